// What the tests of the host layer share: device arrays, launches that must work, the text of a fault.
#pragma once
#include <doctest/doctest.h>

#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include "typeformer/simt/simt.hpp"

namespace simt = typeformer::simt;
using typeformer::bf16;
using typeformer::f16;

inline constexpr unsigned all_lanes = 0xffffffffu;

// An array in device memory.
template <class T>
class DeviceArray {
 public:
  explicit DeviceArray(std::size_t size) : size_(size) {
    REQUIRE(cudaMalloc(&pointer_, size * sizeof(T)) == cudaSuccess);
  }
  explicit DeviceArray(const std::vector<T>& values) : DeviceArray(values.size()) {
    REQUIRE(cudaMemcpy(pointer_, values.data(), size_ * sizeof(T), cudaMemcpyHostToDevice) == cudaSuccess);
  }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;
  ~DeviceArray() { cudaFree(pointer_); }

  T* get() const { return static_cast<T*>(pointer_); }
  std::vector<T> values() const {
    std::vector<T> result(size_);
    REQUIRE(cudaMemcpy(result.data(), pointer_, size_ * sizeof(T), cudaMemcpyDeviceToHost) == cudaSuccess);
    return result;
  }

 private:
  void* pointer_ = nullptr;
  std::size_t size_;
};

// Launches and waits.
template <class... Parameters, class... Arguments>
void run(void (*kernel)(Parameters...), const simt::LaunchShape& shape, Arguments&&... arguments) {
  REQUIRE(simt::launch(kernel, shape, std::forward<Arguments>(arguments)...) == cudaSuccess);
  REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
}

// What the launch is accused of; empty when of nothing.
template <class... Parameters, class... Arguments>
std::string fault_of(void (*kernel)(Parameters...), const simt::LaunchShape& shape, Arguments&&... arguments) {
  try {
    if (const auto error = simt::launch(kernel, shape, std::forward<Arguments>(arguments)...))
      return cudaGetErrorString(error);
    cudaDeviceSynchronize();
  } catch (const simt::Fault& fault) {
    return fault.what();
  }
  return "";
}

// "file.cpp:12" of the line that ends in the comment "// @tag".
inline std::string at(const std::string& tag, const char* file = __builtin_FILE()) {
  std::ifstream source(file);
  std::string line, name = file;
  name.erase(0, name.rfind('/') + 1);
  for (int number = 1; std::getline(source, line); ++number)
    if (line.ends_with("// @" + tag)) return name + ":" + std::to_string(number);
  FAIL("no line with the tag ", tag);
  return "";
}

// Whether the text holds each of the pieces.
template <class... Pieces>
bool mentions(const std::string& text, const Pieces&... pieces) {
  const bool found = ((text.find(pieces) != text.npos) && ...);
  if (!found) MESSAGE("the report was: ", text);
  return found;
}

inline std::uint32_t scramble(std::uint32_t x) {
  x ^= x >> 16;
  x *= 0x7feb352du;
  x ^= x >> 15;
  x *= 0x846ca68bu;
  return x ^ (x >> 16);
}
