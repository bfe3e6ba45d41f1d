/// What tests ask of the host layer about the program under test: failures on purpose, calls counted by name, and what
/// is still alive. For programs that run on the host only.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "typeformer/simt/streams.hpp"

namespace typeformer::inline TYPEFORMER_ABI::simt {

/// While it lives, one call of the CUDA runtime or of cuBLASLt fails without having done anything: the nth (from 1)
/// after its construction, of all functions or of those whose names begin with `only`. A kernel launch is a call of
/// cudaLaunchKernel. Functions that ask for the last error or for texts neither count nor fail; functions that free or
/// destroy do so although they report the failure, so that leaks found afterwards are the caller's. A code that CUDA
/// calls sticky, such as cudaErrorIllegalAddress, makes all later calls fail too: until cudaDeviceReset, or the end of
/// the object's life. One that cuBLASLt should report is a cublasStatus_t: `blas_status`.
class FailCall {
 public:
  explicit FailCall(std::uint64_t nth, cudaError_t code = cudaErrorUnknown, std::string_view only = "",
                    int blas_status = 14 /* CUBLAS_STATUS_INTERNAL_ERROR */) {
    failure_.countdown = nth;
    failure_.code = code;
    failure_.only = only;
    failure_.blas_status = blas_status;
    enlist(failure_);
  }
  FailCall(const FailCall&) = delete;
  FailCall& operator=(const FailCall&) = delete;
  ~FailCall() { dismiss(failure_); }

  /// Whether the call has failed by now; if not, the code under test makes fewer calls.
  bool fired() const { return !failure_.failed.empty(); }
  /// The function that failed.
  const std::string& name() const { return failure_.failed; }

 private:
  friend class FailAllocation;
  static void enlist(Failure& failure) {
    Runtime& device = runtime();
    const std::lock_guard lock(device.mutex);
    device.failures.push_back(&failure);
  }
  static void dismiss(Failure& failure) {
    Runtime& device = runtime();
    const std::lock_guard lock(device.mutex);
    std::erase(device.failures, &failure);
    if (failure.made_sticky) device.sticky = device.last_error = cudaSuccess;
  }
  Failure failure_;
};

/// While it lives, one allocation of device or pinned memory fails with cudaErrorMemoryAllocation: the nth (from 1).
class FailAllocation {
 public:
  explicit FailAllocation(std::uint64_t nth) {
    failure_.countdown = nth;
    failure_.code = cudaErrorMemoryAllocation;
    failure_.allocations = true;
    FailCall::enlist(failure_);
  }
  FailAllocation(const FailAllocation&) = delete;
  FailAllocation& operator=(const FailAllocation&) = delete;
  ~FailAllocation() { FailCall::dismiss(failure_); }
  bool fired() const { return !failure_.failed.empty(); }

 private:
  Failure failure_;
};

/// While it lives, each GPU has `bytes` bytes of memory in all: allocations beyond fail, cudaMemGetInfo tells.
class MemoryLimit {
 public:
  explicit MemoryLimit(std::size_t bytes) : before_(runtime().memory_limit) { set(bytes); }
  MemoryLimit(const MemoryLimit&) = delete;
  MemoryLimit& operator=(const MemoryLimit&) = delete;
  ~MemoryLimit() { set(before_); }

 private:
  static void set(std::size_t bytes) {
    const std::lock_guard lock(runtime().mutex);
    runtime().memory_limit = bytes;
  }
  std::size_t before_;
};

/// While it lives, a kernel's fault is what it is on a GPU: no exception, but a sticky status of the call that waits
/// and of all calls after it (cudaErrorIllegalAddress, cudaErrorMisalignedAddress or cudaErrorLaunchFailure) until
/// cudaDeviceReset or the end of the object's life. last_fault() tells what happened.
class StickyFaults {
 public:
  StickyFaults() : before_(set(true)) {}
  StickyFaults(const StickyFaults&) = delete;
  StickyFaults& operator=(const StickyFaults&) = delete;
  ~StickyFaults() {
    set(before_);
    if (!before_) runtime().sticky = runtime().last_error = cudaSuccess;
  }

 private:
  static bool set(bool value) {
    const std::lock_guard lock(runtime().mutex);
    return std::exchange(runtime().sticky_faults, value);
  }
  bool before_;
};

/// What the last kernel that broke a rule was accused of.
inline std::string last_fault() {
  const std::lock_guard lock(runtime().mutex);
  return runtime().last_fault;
}

/// How many objects of each kind have been made and not yet destroyed.
struct LiveObjects {
  std::size_t allocations = 0, bytes = 0, pinned = 0, streams = 0, events = 0, graphs = 0, executables = 0;
  std::size_t blas_handles = 0, blas_descriptions = 0, blas_layouts = 0, blas_preferences = 0;

  bool operator==(const LiveObjects&) const = default;
  std::string text() const {
    return message(
               "%zu allocations of %zu bytes, %zu of pinned memory, %zu streams, %zu events, %zu graphs, %zu "
               "executable "
               "graphs, cuBLASLt: %zu handles, %zu descriptions, %zu layouts, %zu preferences",
               allocations, bytes, pinned, streams, events, graphs, executables, blas_handles, blas_descriptions,
               blas_layouts, blas_preferences)
        .text;
  }
};

/// Objects of both GPUs that are alive now. Compare two of these to find leaks.
inline LiveObjects live_objects() {
  Runtime& device = runtime();
  const std::lock_guard lock(device.mutex);
  LiveObjects result;
  result.allocations = device.memory.pieces();
  for (int gpu = 0; gpu < gpu_count; ++gpu) result.bytes += device.memory.used(gpu);
  result.pinned = device.pinned.size();
  result.streams = device.handles.streams.size();
  result.events = device.handles.events.size();
  result.graphs = device.handles.graphs.size();
  result.executables = device.handles.executables.size();
  result.blas_handles = device.handles.blas[BlasKind::handle].size();
  result.blas_descriptions = device.handles.blas[BlasKind::description].size();
  result.blas_layouts = device.handles.blas[BlasKind::layout].size();
  result.blas_preferences = device.handles.blas[BlasKind::preference].size();
  return result;
}

}  // namespace typeformer
