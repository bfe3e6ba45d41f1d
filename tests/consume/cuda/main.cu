/// A user's CUDA program: makes the device, or says why the machine has none.
#include <typeformer/cuda.cuh>

#include <cstdio>

int main() {
  try {
    typeformer::cuda::Device device;
    std::puts("a device");
  } catch (const typeformer::Error& error) {
    std::puts(error.what());
  }
}
