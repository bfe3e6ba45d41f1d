/// GPU memory that operations reuse.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "typeformer/kernel/cuda/status.cuh"
#include "typeformer/simt/simt.hpp"

namespace typeformer::inline TYPEFORMER_ABI::cuda::detail {

/// Device memory that grows, freed with the object. What is queued on the stream may still use it: cudaFree waits.
class Workspace {
 public:
  Workspace() = default;
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;
  ~Workspace() {
    if (memory_) (void)cudaFree(memory_);
  }
  /// At least `bytes` bytes, aligned to 256; contents are lost when it grows.
  void* reserve(std::size_t bytes, std::string_view operation) {
    if (bytes <= bytes_) return memory_;
    bytes_ = 0;  // before what may throw
    if (memory_) check(cudaFree(std::exchange(memory_, nullptr)), operation, "workspace");
    const std::size_t larger = bytes + bytes / 2;
    check(cudaMalloc(&memory_, larger), operation, "workspace of " + std::to_string(larger) + " bytes");
    bytes_ = larger;
    return memory_;
  }

  const void* data() const { return memory_; }

 private:
  void* memory_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace typeformer::inline TYPEFORMER_ABI::cuda::detail
