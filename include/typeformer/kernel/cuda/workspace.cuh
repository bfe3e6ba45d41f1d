/// GPU memory that operations reuse.
#pragma once
#include <cstddef>
#include <string_view>
#include <utility>

#include "typeformer/kernel/cuda/memory.cuh"

namespace typeformer::inline TYPEFORMER_ABI::cuda::detail {

/// Memory that grows, released with the object; the memory it comes from must outlive it.
class Workspace {
 public:
  explicit Workspace(Memory& source) : source_(&source) {}
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;
  ~Workspace() {
    if (memory_) source_->release(memory_);
  }
  /// At least `bytes` bytes, aligned to 256; contents are lost when it grows.
  void* reserve(std::size_t bytes, std::string_view operation) {
    if (bytes <= bytes_) return memory_;
    bytes_ = 0;  // before what may throw
    if (memory_) source_->release(std::exchange(memory_, nullptr));
    const std::size_t larger = bytes + bytes / 2;
    memory_ = source_->allocate(larger, operation);
    bytes_ = larger;
    return memory_;
  }

  const void* data() const { return memory_; }
  std::size_t bytes() const { return bytes_; }

 private:
  Memory* source_;
  void* memory_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace typeformer::inline TYPEFORMER_ABI::cuda::detail
