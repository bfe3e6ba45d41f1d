/// What every function of the runtime's stand-in begins with: the lock, the count, failures that a test asks for, and
/// CUDA's rules of what may be called while a graph is captured.
#pragma once
#include "typeformer/simt/streams.hpp"

namespace typeformer::inline TYPEFORMER_ABI::simt {

/// What a function does to resources. One that releases does it even when it reports a failure.
enum class Effect : std::uint8_t { none, allocates, releases };

/// Whether no call succeeds any more after this one.
inline bool is_sticky(cudaError_t code) {
  switch (code) {
    case cudaErrorECCUncorrectable:
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchTimeout:
    case cudaErrorAssert:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure:
      return true;
    default:
      return false;
  }
}

/// A call of the program under test, from its first to its last line. Calls that the stand-in makes by itself within
/// it neither count nor fail.
class Call {
 public:
  explicit Call(const char* name, Effect effect = Effect::none) : Call(name, effect, true) {}
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;
  ~Call() { --runtime().call_depth; }

  /// What the call fails with from the start.
  cudaError_t error = cudaSuccess;
  int blas_status = 0;

  /// The call's result, where it has released something in spite of the error.
  cudaError_t end(cudaError_t result) const { return status(error ? error : result); }

 protected:
  Call(const char* name, Effect effect, bool of_runtime) : lock_(runtime().mutex) {
    Runtime& device = runtime();
    if (device.call_depth++ > 0) return;
    ++device.totals.calls[name];
    for (Failure* failure : device.failures) fail_by(*failure, name, effect);
    if (!error) error = device.sticky;
    if (of_runtime) status(error);
  }

 private:
  void fail_by(Failure& failure, std::string_view name, Effect effect) {
    const bool meant = failure.allocations ? effect == Effect::allocates : name.starts_with(failure.only);
    if (!meant || !failure.failed.empty() || --failure.countdown > 0) return;
    failure.failed = name;
    error = failure.code;
    blas_status = failure.blas_status;
    if (!is_sticky(error) || runtime().sticky) return;
    runtime().sticky = error;
    failure.made_sticky = true;
    drop_all(runtime());
  }
  std::lock_guard<std::recursive_mutex> lock_;
};

/// Runs checks of a call's arguments. A Fault is thrown on, or is the status that it stays when faults are sticky.
template <class Checks>
cudaError_t check_arguments(Checks checks) {
  try {
    checks();
    return cudaSuccess;
  } catch (const Fault& fault) {
    if (!runtime().sticky_faults) throw;
    return break_gpu(fault);
  }
}

// ---------------------------------------------------------------- captures

/// The calling thread's mode, see cudaThreadExchangeStreamCaptureMode.
inline thread_local cudaStreamCaptureMode capture_mode = cudaStreamCaptureModeGlobal;

/// For calls that may be unsafe because a capture does not see them, such as cudaMalloc: an error, and the end of the
/// captures that forbid them.
inline cudaError_t unsafe_call() {
  if (capture_mode == cudaStreamCaptureModeRelaxed) return cudaSuccess;
  bool forbidden = false;
  for (const auto& capture : runtime().captures) {
    const bool everywhere = capture_mode == cudaStreamCaptureModeGlobal && capture->mode == cudaStreamCaptureModeGlobal;
    if (capture->mode == cudaStreamCaptureModeRelaxed || (!capture->local() && !everywhere)) continue;
    capture->invalid = forbidden = true;
  }
  return forbidden ? cudaErrorStreamCaptureUnsupported : cudaSuccess;
}

/// Reports an operation that no capture allows, and invalidates the capture.
inline cudaError_t violation(Capture& capture, cudaError_t code) {
  if (capture.invalid && !capture.ended) return cudaErrorStreamCaptureInvalidated;
  capture.invalid = true;
  return code;
}

/// While a blocking stream of its GPU is captured, a null stream cannot be used: it would have to wait for the capture.
inline cudaError_t implicit_dependency(const StreamQueue& queue, bool invalidates) {
  if (&queue != runtime().null_streams[queue.gpu].get()) return cudaSuccess;
  cudaError_t result = cudaSuccess;
  for (const auto& capture : runtime().captures)
    for (const Stream& stream : capture->streams) {
      if (stream->non_blocking || stream->gpu != queue.gpu) continue;
      result = cudaErrorStreamCaptureImplicit;
      if (invalidates) capture->invalid = true;
    }
  return result;
}

/// Finds a stream's queue for an operation that is put there.
inline cudaError_t find_queue(cudaStream_t stream, Stream& queue) {
  queue = queue_of(stream);
  if (!queue) return cudaErrorInvalidResourceHandle;
  if (queue->capture && queue->capture->invalid) return cudaErrorStreamCaptureInvalidated;
  return implicit_dependency(*queue, true);
}

/// Finds a stream's queue for a call that waits for it or asks about it.
inline cudaError_t find_waited(cudaStream_t stream, Stream& queue) {
  if (const auto error = find_queue(stream, queue)) return error;
  if (queue->capture) return violation(*queue->capture, cudaErrorStreamCaptureUnsupported);
  return unsafe_call();
}

/// Takes all streams out of a capture.
inline void end_capture(const std::shared_ptr<Capture>& capture) {
  for (const Stream& stream : capture->streams) {
    stream->capture = nullptr;
    stream->frontier.clear();
  }
  capture->ended = true;
  std::erase(runtime().captures, capture);
}

/// Finds an event for a call that waits for it or asks about it.
inline cudaError_t check_event(cudaEvent_t event) {
  if (!runtime().handles.events.contains(event)) return cudaErrorInvalidResourceHandle;
  if (event->capture) return violation(*event->capture, cudaErrorCapturedEvent);
  return cudaSuccess;
}

/// Whether a mark has been reached. Each question lets one operation run.
inline cudaError_t ask(const Mark& mark) {
  const Stream& queue = mark.stream;
  if (queue && queue->done < mark.count)
    if (const auto error = wait_for({queue, queue->done + 1})) return error;
  if (queue && queue->done < mark.count) return cudaErrorNotReady;
  return wait_for(mark);
}

}  // namespace typeformer
