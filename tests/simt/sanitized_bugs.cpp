// Planted bugs for AddressSanitizer, one for each argument: it must end the program and name the line in this file.
#include <cstring>

#include "typeformer/simt/simt.hpp"

namespace simt = typeformer::simt;

namespace {

__global__ void store_static(float* out) {
  TYPEFORMER_SHARED_ARRAY(float, array, 31);
  array[threadIdx.x] = 1;
  __syncthreads();
  out[threadIdx.x] = array[0];
}
__global__ void store_dynamic(float* out) {
  auto* array = simt::dynamic_shared<float>();
  array[threadIdx.x] = 1;
  __syncthreads();
  out[threadIdx.x] = array[0];
}
__global__ void store_global(float* out) { out[threadIdx.x] = 1; }
__global__ void load_global(const float* in, float* out) { out[threadIdx.x] = in[threadIdx.x + 1]; }
__global__ void copy_global(const float* in, float* out) {
  auto* array = simt::dynamic_shared<float>();
  simt::cp_async<4>(array + threadIdx.x, in + threadIdx.x + 1);
  simt::cp_async_wait_all();
  out[threadIdx.x] = array[threadIdx.x];
}
__global__ void vector_global(const float* in, float* out) {
  out[threadIdx.x] = simt::load_vector<float4>(in + 4 * threadIdx.x).x;
}
struct Argument {
  float* pointer;
};
__global__ void store_freed(Argument argument) { argument.pointer[threadIdx.x] = 1; }

}  // namespace

int main(int count, char** arguments) {
  if (count != 2) return 2;
  void *x = nullptr, *y = nullptr, *freed = nullptr;
  if (cudaMalloc(&x, 32 * sizeof(float)) || cudaMalloc(&y, 31 * sizeof(float)) || cudaMalloc(&freed, 128)) return 2;
  if (cudaMemset(x, 0, 128) || cudaFree(freed)) return 2;
  auto* in = static_cast<const float*>(x);
  auto *out = static_cast<float*>(x), *shorter = static_cast<float*>(y);
  const auto is = [&](const char* name) { return std::strcmp(arguments[1], name) == 0; };
  cudaError_t error = cudaSuccess;
  if (is("static")) error = simt::launch(store_static, {1, 32}, out);
  if (is("dynamic")) error = simt::launch(store_dynamic, {1, 32, 124}, out);
  if (is("store")) error = simt::launch(store_global, {1, 32}, shorter);
  if (is("load")) error = simt::launch(load_global, {1, 32}, in, out);
  if (is("copy")) error = simt::launch(copy_global, {1, 32, 128}, in, out);
  if (is("vector")) error = simt::launch(vector_global, {1, 32}, in, out);
  if (is("freed")) error = simt::launch(store_freed, {1, 32}, Argument{static_cast<float*>(freed)});
  return error || cudaDeviceSynchronize() ? 2 : 0;
}
