/// Where a device's memory comes from, and what of it is kept for the next time.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <new>
#include <string>
#include <string_view>

#include "typeformer/kernel/cuda/status.cuh"
#include "typeformer/simt/simt.hpp"

namespace typeformer::inline TYPEFORMER_ABI::cuda {

/// GPU memory of the caller's instead of cudaMalloc's. Called with `user` and the stream on which the memory is used:
/// what allocate gives may still be in use by work queued there before, and what release gets by work queued there.
struct MemoryFunctions {
  /// At least `bytes` bytes, aligned to 256; null when there are none left.
  void* (*allocate)(std::size_t bytes, cudaStream_t stream, void* user) = nullptr;
  void (*release)(void* memory, cudaStream_t stream, void* user) = nullptr;
  void* user = nullptr;
};

namespace detail {

/// The memory of one device. Released memory is kept and given out again without asking CUDA, which would wait: all
/// work is on one stream, so the next user comes after the last one. With the caller's functions nothing is kept.
class Memory {
 public:
  Memory(const MemoryFunctions& functions, cudaStream_t stream) : functions_(functions), stream_(stream) {
    require(!functions.allocate == !functions.release, "cuda::Device", functions.allocate ? "release" : "allocate",
            "a function, as the other one is given", "none");
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory() { trim(); }

  /// Aligned to 256 bytes. Throws Error of the operation when memory is short.
  void* allocate(std::size_t bytes, std::string_view operation) {
    const std::string what = std::to_string(bytes) + " bytes";
    if (functions_.allocate) {
      void* const memory = functions_.allocate(bytes, stream_, functions_.user);
      require(memory != nullptr, operation, what, "memory to be available", "null");
      if (reinterpret_cast<std::uintptr_t>(memory) % 256 == 0) return memory;
      release(memory);
      throw Error(operation, "memory", "an address that is a multiple of 256", "another one");
    }
    const std::size_t size = (bytes + unit - 1) / unit * unit;
    if (size < bytes) check(cudaErrorMemoryAllocation, operation, what);
    const auto kept = kept_.lower_bound(size);
    if (kept != kept_.end() && kept->first <= size + size / 4) {
      void* const memory = kept->second;
      kept_.erase(kept);
      return memory;
    }
    void* memory = nullptr;
    cudaError_t status = cudaMalloc(&memory, size);
    if (status == cudaErrorMemoryAllocation && !kept_.empty()) {
      (void)cudaGetLastError();
      trim();
      status = cudaMalloc(&memory, size);
    }
    check(status, operation, what);
    sizes_[memory] = size;
    return memory;
  }
  void release(void* memory) noexcept {
    if (functions_.release) return functions_.release(memory, stream_, functions_.user);
    const auto size = sizes_.find(memory);
    if (size == sizes_.end()) return;
    try {
      kept_.emplace(size->second, memory);
    } catch (const std::bad_alloc&) {
      sizes_.erase(size);
      (void)cudaFree(memory);
    }
  }
  /// Gives what is kept back to CUDA, which waits for the work that uses it.
  void trim() noexcept {
    for (const auto& [size, memory] : kept_) {
      sizes_.erase(memory);
      (void)cudaFree(memory);
    }
    kept_.clear();
  }

 private:
  static constexpr std::size_t unit = 512;
  MemoryFunctions functions_;
  cudaStream_t stream_;
  std::multimap<std::size_t, void*> kept_;  // by size
  std::map<void*, std::size_t> sizes_;      // of all that came from CUDA
};

}  // namespace detail
}  // namespace typeformer::inline TYPEFORMER_ABI::cuda
