/// CUDA's index and vector types for the host: NVIDIA's own where TYPEFORMER_SIMT_NVIDIA_HEADERS asks for them.
#pragma once
#if defined(TYPEFORMER_SIMT_NVIDIA_HEADERS)
#include <vector_functions.h>
#include <vector_types.h>
#undef __shared__  // host code cannot check a plain shared variable: TYPEFORMER_SHARED_ARRAY declares it
#else
#define __global__
#define __device__
#define __host__
#define __constant__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __align__(bytes) alignas(bytes)
#define __grid_constant__

struct uint3 {
  unsigned x, y, z;
};
struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned x_size = 1, unsigned y_size = 1, unsigned z_size = 1) : x(x_size), y(y_size), z(z_size) {}
};

// may_alias: kernels read arrays of other types through these.
#define TYPEFORMER_SIMT_VECTORS(scalar, prefix)                                  \
  struct __attribute__((__may_alias__, aligned(2 * sizeof(scalar)))) prefix##2 { \
    scalar x, y;                                                                 \
  };                                                                             \
  struct __attribute__((__may_alias__, aligned(4 * sizeof(scalar)))) prefix##4 { \
    scalar x, y, z, w;                                                           \
  };                                                                             \
  inline prefix##2 make_##prefix##2(scalar x, scalar y) { return {x, y}; }       \
  inline prefix##4 make_##prefix##4(scalar x, scalar y, scalar z, scalar w) { return {x, y, z, w}; }
TYPEFORMER_SIMT_VECTORS(float, float)
TYPEFORMER_SIMT_VECTORS(int, int)
TYPEFORMER_SIMT_VECTORS(unsigned, uint)
TYPEFORMER_SIMT_VECTORS(short, short)
TYPEFORMER_SIMT_VECTORS(unsigned short, ushort)
#undef TYPEFORMER_SIMT_VECTORS
#endif
