/// Operations captured as a CUDA graph.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "typeformer/kernel/cuda/uploaded_lists.cuh"
#include "typeformer/simt/simt.hpp"

namespace typeformer::inline TYPEFORMER_ABI::cuda {

/// What a Device keeps of operations that it recorded: see Device::run. Belongs to the device that recorded, which must
/// outlive it.
class Recording {
 public:
  Recording() = default;
  Recording(Recording&& other) noexcept { swap(other); }
  Recording& operator=(Recording&& other) noexcept {
    swap(other);
    return *this;
  }
  ~Recording() { forget(); }

  /// Whether there is a graph to replay.
  explicit operator bool() const { return graph_ != nullptr; }
  /// Forgets everything: the next run is a first one.
  void forget() noexcept {
    if (graph_) (void)cudaGraphExecDestroy(std::exchange(graph_, nullptr));
    key_.clear();
    lists_.clear();
  }

 private:
  friend class Device;
  void swap(Recording& other) noexcept {
    std::swap(graph_, other.graph_);
    key_.swap(other.key_);
    lists_.swap(other.lists_);
  }
  cudaGraphExec_t graph_ = nullptr;
  std::vector<std::int64_t> key_;                                   // of the run before
  std::vector<std::shared_ptr<const detail::UploadedList>> lists_;  // that the graph's kernels read
};

}  // namespace typeformer::inline TYPEFORMER_ABI::cuda
