/// Inside kernels: who am I, sums over a warp, and loads and stores of a few elements at a time.
#pragma once
#include <cstddef>
#include <cstdint>

#include "typeformer/core/scalar.hpp"
#include "typeformer/simt/simt.hpp"

namespace typeformer::inline TYPEFORMER_ABI::cuda::detail {

// Before a loop. The host's compilers would warn of the pragma, and need not unroll.
#if defined(__CUDACC__)
#define TYPEFORMER_PRAGMA(text) _Pragma(#text)
#define TYPEFORMER_UNROLL _Pragma("unroll")
#define TYPEFORMER_UNROLL_BY(times) TYPEFORMER_PRAGMA(unroll times)
#else
#define TYPEFORMER_UNROLL
#define TYPEFORMER_UNROLL_BY(times)
#endif

inline constexpr unsigned whole_warp = 0xffffffffu;

__device__ __forceinline__ int thread_index() { return static_cast<int>(threadIdx.x); }
__device__ __forceinline__ int lane_index() { return static_cast<int>(threadIdx.x % 32); }
__device__ __forceinline__ int warp_index() { return static_cast<int>(threadIdx.x / 32); }

/// The sum over `lanes` neighbouring lanes (a power of two), the same in each of them.
template <int lanes = 32, class Value>
__device__ __forceinline__ Value lane_sum(Value value) {
  TYPEFORMER_UNROLL
  for (int distance = lanes / 2; distance > 0; distance /= 2) value += __shfl_xor_sync(whole_warp, value, distance);
  return value;
}
/// The same where only the launch knows how many lanes.
template <class Value>
__device__ __forceinline__ Value lane_sum(Value value, int lanes) {
  for (int distance = lanes / 2; distance > 0; distance /= 2) value += __shfl_xor_sync(whole_warp, value, distance);
  return value;
}
template <int lanes = 32>
__device__ __forceinline__ float lane_max(float value) {
  TYPEFORMER_UNROLL
  for (int distance = lanes / 2; distance > 0; distance /= 2)
    value = fmaxf(value, __shfl_xor_sync(whole_warp, value, distance));
  return value;
}

/// Elements of T in 16 bytes.
template <class T>
inline constexpr int vector_elements = static_cast<int>(16 / sizeof(T));

/// to[i] = from[i] as float. With count > 1 both count and from are multiples of 16 bytes.
template <int count, class T>
__device__ __forceinline__ void load_floats(float (&to)[count], const T* from) {
  if constexpr (count == 1) {
    to[0] = simt::widen(*from);
  } else if constexpr (sizeof(T) == 4) {
    TYPEFORMER_UNROLL
    for (int i = 0; i < count; i += 4) {
      const float4 four = simt::load_vector<float4>(from + i);
      to[i] = four.x;
      to[i + 1] = four.y;
      to[i + 2] = four.z;
      to[i + 3] = four.w;
    }
  } else {
    const uint4 eight = simt::load_vector<uint4>(from);
    const unsigned pairs[4] = {eight.x, eight.y, eight.z, eight.w};
    TYPEFORMER_UNROLL
    for (int i = 0; i < 4; ++i) {
      to[2 * i] = simt::unpack_low<T>(pairs[i]);
      to[2 * i + 1] = simt::unpack_high<T>(pairs[i]);
    }
  }
}

/// to[i] = from[i], rounded to T; alignment as in load_floats.
template <int count, class T>
__device__ __forceinline__ void store_floats(T* to, const float (&from)[count]) {
  if constexpr (count == 1) {
    *to = simt::narrow<T>(from[0]);
  } else if constexpr (sizeof(T) == 4) {
    TYPEFORMER_UNROLL
    for (int i = 0; i < count; i += 4)
      simt::store_vector(to + i, make_float4(from[i], from[i + 1], from[i + 2], from[i + 3]));
  } else {
    unsigned pairs[4];
    TYPEFORMER_UNROLL
    for (int i = 0; i < 4; ++i) pairs[i] = simt::pack<T>(from[2 * i], from[2 * i + 1]);
    simt::store_vector(to, make_uint4(pairs[0], pairs[1], pairs[2], pairs[3]));
  }
}

/// Whether all pointers are multiples of 16 bytes (null is).
template <class... Pointers>
bool aligned_to_vectors(const Pointers*... pointers) {
  return ((reinterpret_cast<std::uintptr_t>(pointers) % 16 == 0) && ...);
}

}  // namespace typeformer::inline TYPEFORMER_ABI::cuda::detail
