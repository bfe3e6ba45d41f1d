/// A user's CUDA program: makes the device, or says why the machine has none.
#include <typeformer/cuda.cuh>

#include <cstdio>

const char* message(const typeformer::Error& error);  // message.cpp

int main() {
  try {
    typeformer::cuda::Device device;
    std::puts("a device");
  } catch (const typeformer::Error& error) {
    std::puts(message(error));
  }
}
