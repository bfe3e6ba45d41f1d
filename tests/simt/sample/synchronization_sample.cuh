// A kernel for the test of mutate_synchronization.py: every synchronization is needed, except the last one.
#pragma once
#include "typeformer/simt/simt.hpp"

namespace typeformer::inline TYPEFORMER_ABI {

// out[i] = sum over stages of in[stage][63 - i], through two buffers filled by cp.async. __syncthreads(); in a comment.
__global__ void sum_reversed(const int* in, int* out, unsigned stages) {
  int* buffer = simt::dynamic_shared<int>();
  const unsigned i = threadIdx.x;
  simt::cp_async<4>(buffer + i, in + i);
  simt::cp_async_commit();
  int sum = 0;
  for (unsigned k = 0; k < stages; ++k) {
    if (k + 1 < stages) simt::cp_async<4>(buffer + (k + 1) % 2 * 64 + i, in + (k + 1) * 64 + i);
    simt::cp_async_commit();
    simt::cp_async_wait<1>();
    __syncthreads();
    sum += buffer[k % 2 * 64 + 63 - i];
    __syncthreads();
  }
  out[i] = sum;
  __syncthreads();  // nothing follows
}

}  // namespace typeformer
