// Runs the sample of mutate_synchronization.py's test; exit status 0 when the result is right and no rule was broken.
#include "sample/synchronization_sample.cuh"

#include <cstdio>

int main() {
  int host[256], result[64];
  for (int i = 0; i < 256; ++i) host[i] = i * i;
  void *in = nullptr, *out = nullptr;
  try {
    if (cudaMalloc(&in, sizeof host) || cudaMalloc(&out, sizeof result)) return 2;
    if (cudaMemcpy(in, host, sizeof host, cudaMemcpyHostToDevice)) return 2;
    if (typeformer::simt::launch(typeformer::sum_reversed, {1, 64, 512}, static_cast<const int*>(in),
                                 static_cast<int*>(out), 4u))
      return 2;
    if (cudaMemcpy(result, out, sizeof result, cudaMemcpyDeviceToHost)) return 2;
  } catch (const typeformer::Error& error) {
    std::puts(error.what());
    return 1;
  }
  for (int i = 0; i < 64; ++i)
    if (result[i] != host[63 - i] + host[127 - i] + host[191 - i] + host[255 - i]) return std::puts("wrong sum"), 1;
  return 0;
}
