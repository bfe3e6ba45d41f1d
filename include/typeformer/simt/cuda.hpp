/// The device side of simt.hpp, for nvcc (other compilers see nothing here): the same names as host.hpp, each one PTX
/// instruction or a few.
#pragma once
#if defined(__CUDACC__)
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <tuple>
#include <utility>

#include "typeformer/simt/convert.hpp"

namespace typeformer::inline TYPEFORMER_ABI::simt {

/// Where and how a kernel runs: `launch(kernel, {grid, block, dynamic_shared_bytes, stream}, arguments...)`.
struct LaunchShape {
  dim3 grid, block;
  std::size_t shared_bytes;
  cudaStream_t stream;

  LaunchShape(dim3 grid_size, dim3 block_size, std::size_t dynamic_bytes = 0, cudaStream_t on = nullptr)
      : grid(grid_size), block(block_size), shared_bytes(dynamic_bytes), stream(on) {}
};

/// Starts kernel(arguments...) on the stream. Returns the status of the launch.
template <class... Parameters, class... Arguments>
[[nodiscard]] cudaError_t launch(void (*kernel)(Parameters...), const LaunchShape& shape, Arguments&&... arguments) {
  static_assert(sizeof...(Parameters) == sizeof...(Arguments), "A launch passes one argument per kernel parameter.");
  std::tuple<std::remove_cv_t<Parameters>...> values{static_cast<Parameters>(arguments)...};
  return std::apply(
      [&](auto&... value) {
        void* list[] = {static_cast<void*>(&value)...};
        return cudaLaunchKernel(reinterpret_cast<const void*>(kernel), shape.grid, shape.block, list,
                                shape.shared_bytes, shape.stream);
      },
      values);
}

/// Allows a kernel more than 48 KiB of dynamic shared memory. Returns the status of cudaFuncSetAttribute.
template <class... Parameters>
[[nodiscard]] cudaError_t allow_shared(void (*kernel)(Parameters...), std::size_t bytes) {
  return cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel), cudaFuncAttributeMaxDynamicSharedMemorySize,
                              static_cast<int>(bytes));
}

/// The launch's dynamic shared memory, aligned to 1024 bytes.
template <class T>
__device__ __forceinline__ T* dynamic_shared() {
  extern __shared__ __align__(1024) unsigned char typeformer_dynamic_shared[];
  return reinterpret_cast<T*>(typeformer_dynamic_shared);
}

/// *address as a Vector (float4, uint2 ...), aligned to its size.
template <class Vector>
__device__ __forceinline__ Vector load_vector(const void* address) {
  static_assert(sizeof(Vector) <= 16, "A vector access moves at most 16 bytes.");
  return *reinterpret_cast<const Vector*>(address);
}
/// Stores a Vector at an address aligned to its size.
template <class Vector>
__device__ __forceinline__ void store_vector(void* address, Vector value) {
  static_assert(sizeof(Vector) <= 16, "A vector access moves at most 16 bytes.");
  *reinterpret_cast<Vector*>(address) = value;
}

__device__ __forceinline__ unsigned shared_address(const void* pointer) {
  return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}

/// Starts to copy Bytes (4, 8 or 16) from global to shared memory; only the first source_bytes are read, the rest of
/// the destination becomes zero. Both addresses are multiples of Bytes.
template <int Bytes>
__device__ __forceinline__ void cp_async_bytes(void* destination, const void* source, unsigned source_bytes) {
  static_assert(Bytes == 4 || Bytes == 8 || Bytes == 16, "cp.async copies 4, 8 or 16 bytes.");
  if constexpr (Bytes == 16)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(destination)), "l"(source),
                 "r"(source_bytes)
                 : "memory");
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(shared_address(destination)), "l"(source),
                 "n"(Bytes), "r"(source_bytes)
                 : "memory");
}
/// Starts to copy Bytes (4, 8 or 16) from global to shared memory, or to zero the destination when valid is false.
template <int Bytes>
__device__ __forceinline__ void cp_async(void* destination, const void* source, bool valid = true) {
  cp_async_bytes<Bytes>(destination, source, valid ? Bytes : 0);
}
/// Closes the group of copies that this thread issued since the last commit.
__device__ __forceinline__ void cp_async_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
/// Waits until at most the Pending most recent groups of this thread are still in flight.
template <int Pending>
__device__ __forceinline__ void cp_async_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(Pending) : "memory");
}
/// Waits for all copies of this thread, committed or not.
__device__ __forceinline__ void cp_async_wait_all() { asm volatile("cp.async.wait_all;" ::: "memory"); }

/// Loads 8x8 matrices of 16-bit elements from shared memory; host.hpp's matrix.hpp tells which lane gets what.
__device__ __forceinline__ void ldmatrix_x1(unsigned (&r)[1], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];"
               : "=r"(r[0])
               : "r"(shared_address(row))
               : "memory");
}
__device__ __forceinline__ void ldmatrix_x2(unsigned (&r)[2], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
               : "=r"(r[0]), "=r"(r[1])
               : "r"(shared_address(row))
               : "memory");
}
__device__ __forceinline__ void ldmatrix_x4(unsigned (&r)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(shared_address(row))
               : "memory");
}
__device__ __forceinline__ void ldmatrix_x1_trans(unsigned (&r)[1], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%0}, [%1];"
               : "=r"(r[0])
               : "r"(shared_address(row))
               : "memory");
}
__device__ __forceinline__ void ldmatrix_x2_trans(unsigned (&r)[2], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
               : "=r"(r[0]), "=r"(r[1])
               : "r"(shared_address(row))
               : "memory");
}
__device__ __forceinline__ void ldmatrix_x4_trans(unsigned (&r)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(shared_address(row))
               : "memory");
}

/// d += a b on tensor cores, one 16x8 tile per warp, 16 products per element, float sums. T is bf16 or f16.
template <class T>
__device__ __forceinline__ void mma_m16n8k16(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1);
template <>
__device__ __forceinline__ void mma_m16n8k16<bf16>(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
template <>
__device__ __forceinline__ void mma_m16n8k16<f16>(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

}  // namespace typeformer

/// Declares `T name[size]` in the block's shared memory: uninitialized, aligned to 16 bytes, guarded on the host.
#define TYPEFORMER_SHARED_ARRAY(T, name, size) __shared__ __align__(16) T name[size]
#endif
