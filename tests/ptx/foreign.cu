// Kernels that nobody here wrote the device code of: CUB, cooperative groups, libcu++, NVIDIA's number types; and what
// else CUDA code does. foreign_test.cpp runs them.
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include <cassert>
#include <cstdio>
#include <cub/cub.cuh>
#include <cuda/barrier>
#include <cuda/pipeline>

namespace cg = cooperative_groups;

__constant__ float constants[4] = {1.5f, 2.5f, 3.5f, 4.5f};
struct Numbers {
  int all[40];
};
__device__ __noinline__ float helper(float a, int n) { return n > 3 ? a * n : a + n; }

extern "C" {

__global__ void block_reduce(const float* x, float* y) {
  using Reduce = cub::BlockReduce<float, 256>;
  __shared__ typename Reduce::TempStorage storage;
  float values[4];
  for (int i = 0; i < 4; ++i) values[i] = x[blockIdx.x * 1024 + threadIdx.x + 256 * i];
  const float sum = Reduce(storage).Sum(values);
  if (threadIdx.x == 0) y[blockIdx.x] = sum;
}
__global__ void block_scan(const int* x, int* y) {
  using Scan = cub::BlockScan<int, 128>;
  __shared__ typename Scan::TempStorage storage;
  int values[4], sums[4];
  for (int i = 0; i < 4; ++i) values[i] = x[threadIdx.x * 4 + i];
  Scan(storage).ExclusiveSum(values, sums);
  for (int i = 0; i < 4; ++i) y[threadIdx.x * 4 + i] = sums[i];
}
__global__ void radix_sort(const unsigned* x, unsigned* y) {
  using Sort = cub::BlockRadixSort<unsigned, 128, 4>;
  __shared__ typename Sort::TempStorage storage;
  unsigned values[4];
  for (int i = 0; i < 4; ++i) values[i] = x[threadIdx.x * 4 + i];
  Sort(storage).Sort(values);
  for (int i = 0; i < 4; ++i) y[threadIdx.x * 4 + i] = values[i];
}
__global__ void group_reduce(const float* x, float* y, int n) {
  auto block = cg::this_thread_block();
  auto warp = cg::tiled_partition<32>(block);
  auto tile = cg::tiled_partition<8>(warp);
  float sum = 0;
  for (int i = block.thread_rank(); i < n; i += block.size()) sum += x[i];
  sum = cg::reduce(warp, sum, cg::plus<float>());
  const float most = cg::reduce(tile, static_cast<float>(tile.meta_group_rank()), cg::greater<float>());
  if (warp.thread_rank() == 0) atomicAdd(y, sum);
  if (block.thread_rank() == 0) y[1] = most;
}
__global__ void group_scan(const int* x, int* y) {
  auto tile = cg::tiled_partition<32>(cg::this_thread_block());
  y[threadIdx.x] = cg::exclusive_scan(tile, x[threadIdx.x]);
  if (x[threadIdx.x] & 1) {
    auto together = cg::coalesced_threads();
    y[threadIdx.x] = -static_cast<int>(together.num_threads());
  }
}
__global__ void group_copy(float4* x) {
  __shared__ float4 shared[64];
  auto group = cg::this_thread_block();
  cg::memcpy_async(group, shared, x, 1024);
  cg::wait(group);
  x[threadIdx.x] = shared[63 - threadIdx.x];
}
__global__ void barrier_copy(float* x) {
  __shared__ cuda::barrier<cuda::thread_scope_block> barrier;
  __shared__ alignas(16) float shared[256];
  if (threadIdx.x == 0) init(&barrier, blockDim.x);
  __syncthreads();
  cuda::memcpy_async(shared + threadIdx.x, x + threadIdx.x, 4, barrier);
  barrier.arrive_and_wait();
  x[threadIdx.x] = shared[255 - threadIdx.x];
}
__global__ void pipeline_copy(float* x) {
  __shared__ float shared[256];
  auto pipeline = cuda::make_pipeline();
  pipeline.producer_acquire();
  cuda::memcpy_async(&shared[threadIdx.x], &x[threadIdx.x], sizeof(float), pipeline);
  pipeline.producer_commit();
  pipeline.consumer_wait();
  __syncthreads();
  x[threadIdx.x] = shared[255 - threadIdx.x];
  pipeline.consumer_release();
}
__global__ void halves(const __nv_bfloat162* a, const __nv_bfloat162* b, __nv_bfloat162* c, __half2* d, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  c[i] = __hfma2(a[i], b[i], __hmax2(a[i], b[i]));
  const float2 f = __bfloat1622float2(a[i]);
  d[i] = h2exp2(__hadd2(__floats2half2_rn(f.x, f.y), __float2half2_rn(0.5f)));
  if (__hgt(a[i].x, b[i].x)) c[i].x = hsqrt(__habs(a[i].x));
}
__global__ void fp8(const float* a, __nv_fp8_e4m3* narrow, float* back, int n) {
  const int i = threadIdx.x;
  if (i >= n) return;
  narrow[i] = __nv_fp8_e4m3(a[i]);
  back[i] = static_cast<float>(narrow[i]);
}
__global__ void histogram(const int* x, int* h, int n) {
  __shared__ int shared[64];
  for (int i = threadIdx.x; i < 64; i += blockDim.x) shared[i] = 0;
  __syncthreads();
  for (int i = threadIdx.x; i < n; i += blockDim.x) atomicAdd(&shared[x[i] & 63], 1);
  __syncthreads();
  for (int i = threadIdx.x; i < 64; i += blockDim.x) atomicAdd(&h[i], shared[i]);
  if (__syncthreads_or(threadIdx.x == 77)) h[64] = __syncthreads_count(threadIdx.x < 10);
}
__global__ void add_rows(const int* ids, const __nv_bfloat162* rows, __nv_bfloat162* table, float* counts, int width) {
  for (int i = threadIdx.x; i < width; i += blockDim.x) {
    atomicAdd(&table[ids[blockIdx.x] * width + i], rows[blockIdx.x * width + i]);
    atomicAdd(&counts[i], 1.f);
  }
}
__global__ void last_block(const float* x, float* parts, float* out, unsigned* ticket) {
  __shared__ bool last;
  parts[blockIdx.x] = x[blockIdx.x] * 2;
  __threadfence();
  if (threadIdx.x == 0) last = atomicInc(ticket, gridDim.x) == gridDim.x - 1;
  __syncthreads();
  if (!last || threadIdx.x != 0) return;
  float sum = 0;
  for (unsigned i = 0; i < gridDim.x; ++i) sum += reinterpret_cast<volatile float*>(parts)[i];
  *out = sum;
}
__global__ void spin_lock(int* lock, int* n) {
  for (bool done = false; !done;)
    if (atomicCAS(lock, 0, 1) == 0) {
      *reinterpret_cast<volatile int*>(n) += 1;
      __threadfence();
      atomicExch(lock, 0);
      done = true;
    }
}
__global__ void mathematics(const float* x, float* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const float v = x[i];
  y[i] = v * normcdff(v) + erff(v) + tanhf(v) + powf(fabsf(v), 1.7f) + log1pf(fabsf(v)) + expm1f(v) +
         __fdividef(v, 3.f) + cosf(v * 1000);
}
__global__ void assertion(const int* x) {
  assert(x[threadIdx.x] >= 0);
  if (x[threadIdx.x] == 1000) printf("hello %d\n", x[threadIdx.x]);
}
__global__ void call(float* y) { y[threadIdx.x] = helper(threadIdx.x, threadIdx.x & 7); }
__global__ void switched(const int* x, int* y) {
  int r = 0;
  switch (x[threadIdx.x]) {
    case 0:
      r = 5;
      break;
    case 1:
      r = 17 * threadIdx.x;
      break;
    case 2:
      r = y[threadIdx.x];
      break;
    case 3:
      r = -1;
      break;
    case 4:
      r = 99;
      break;
    case 5:
      r = __popc(threadIdx.x);
      break;
    case 6:
      r = __ffs(threadIdx.x);
      break;
    default:
      break;
  }
  y[threadIdx.x] = r;
}
__global__ void parameters(float* x, const __grid_constant__ Numbers numbers) {
  int twice[32];
  for (int i = 0; i < 32; ++i) twice[i] = numbers.all[i] * 2;
  x[threadIdx.x] = constants[threadIdx.x & 3] + twice[(threadIdx.x * 7) & 31];
}

}  // extern "C"
