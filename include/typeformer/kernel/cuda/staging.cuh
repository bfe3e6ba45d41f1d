/// Copies between host and GPU memory through pinned memory.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string_view>
#include <utility>

#include "typeformer/kernel/cuda/status.cuh"
#include "typeformer/simt/simt.hpp"

namespace typeformer::inline TYPEFORMER_ABI::cuda::detail {

/// A piece of pinned memory, and what is known of the last copy from or to it.
class StagingSlot {
 public:
  StagingSlot() = default;
  StagingSlot(const StagingSlot&) = delete;
  StagingSlot& operator=(const StagingSlot&) = delete;
  ~StagingSlot() {
    if (state_ != State::idle) (void)wait();
    if (event_) (void)cudaEventDestroy(event_);
    if (memory_) (void)cudaFreeHost(memory_);
  }

  /// At least `bytes` bytes that no copy reads or writes any more, for one that is about to be queued on the stream.
  void* reserve(std::size_t bytes, cudaStream_t stream, std::string_view operation) {
    if (state_ != State::idle) check(wait(), operation, "copy before");
    state_ = State::idle;
    if (bytes > bytes_) {
      bytes_ = 0;  // before what may throw
      if (memory_) check(cudaFreeHost(std::exchange(memory_, nullptr)), operation, "pinned memory");
      check(cudaMallocHost(&memory_, bytes), operation, "pinned memory");
      bytes_ = bytes;
    }
    if (!event_) check(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), operation, "event");
    stream_ = stream;
    state_ = State::queued;
    return memory_;
  }
  /// The copy is queued: from here on an event tells when it is over.
  void record(std::string_view operation) {
    check(cudaEventRecord(event_, stream_), operation, "event");
    state_ = State::recorded;
  }
  /// The copy is over.
  void release() { state_ = State::idle; }

 private:
  enum class State { idle, queued, recorded };
  cudaError_t wait() const {
    return state_ == State::recorded ? cudaEventSynchronize(event_) : cudaStreamSynchronize(stream_);
  }
  void* memory_ = nullptr;
  std::size_t bytes_ = 0;
  cudaEvent_t event_ = nullptr;
  cudaStream_t stream_ = nullptr;
  State state_ = State::idle;
};

/// Copies whose host side is free when the call returns, whatever fails: they go through pinned slots, in pieces when
/// they are long. Uploads do not wait for the GPU, unless both slots are still read.
class Staging {
 public:
  static constexpr std::size_t piece = std::size_t{4} << 20;

  void upload(cudaStream_t stream, void* to, const void* from, std::size_t bytes, std::string_view operation) {
    for (std::size_t done = 0; done < bytes; done += piece) {
      const std::size_t count = std::min(piece, bytes - done);
      StagingSlot& slot = up_[next_ ^= 1];
      void* const staged = slot.reserve(count, stream, operation);
      std::memcpy(staged, static_cast<const std::byte*>(from) + done, count);
      check(cudaMemcpyAsync(static_cast<std::byte*>(to) + done, staged, count, cudaMemcpyHostToDevice, stream),
            operation, "copy");
      slot.record(operation);
    }
  }
  /// Waits for everything that was queued before.
  void download(cudaStream_t stream, void* to, const void* from, std::size_t bytes, std::string_view operation) {
    for (std::size_t done = 0; done < bytes; done += piece) {
      const std::size_t count = std::min(piece, bytes - done);
      void* const staged = down_.reserve(count, stream, operation);
      check(cudaMemcpyAsync(staged, static_cast<const std::byte*>(from) + done, count, cudaMemcpyDeviceToHost, stream),
            operation, "copy");
      check(cudaStreamSynchronize(stream), operation, "stream");
      down_.release();
      std::memcpy(static_cast<std::byte*>(to) + done, staged, count);
    }
  }

 private:
  StagingSlot up_[2], down_;
  int next_ = 0;
};

}  // namespace typeformer::inline TYPEFORMER_ABI::cuda::detail
