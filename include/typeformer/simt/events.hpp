/// Events of the CUDA runtime's stand-in. Included by runtime.hpp.
#pragma once
#include "typeformer/simt/calls.hpp"

namespace typeformer::inline TYPEFORMER_ABI::simt {

inline cudaError_t record(cudaEvent_t event, cudaStream_t stream) {
  Stream queue;
  if (!runtime().handles.events.contains(event)) return cudaErrorInvalidResourceHandle;
  if (const auto error = find_queue(stream, queue)) return error;
  if (queue->gpu != event->gpu) return cudaErrorInvalidResourceHandle;
  event->capture = queue->capture;
  if (queue->capture) {  // no operation: a place in the graph
    event->frontier = queue->frontier;
    return cudaSuccess;
  }
  const auto time = std::make_shared<std::chrono::steady_clock::time_point>();
  push(queue, {Work::record, "cudaEventRecord", [time] { *time = std::chrono::steady_clock::now(); }});
  event->mark = end_of(queue);
  event->time = time;
  return cudaSuccess;
}

/// The stream takes part in a capture from here on, behind the event.
inline cudaError_t join_capture(const Stream& queue, const std::shared_ptr<Capture>& capture,
                                const std::vector<std::size_t>& frontier) {
  if (queue == runtime().null_streams[queue->gpu]) return violation(*capture, cudaErrorStreamCaptureUnsupported);
  if (queue->capture != capture) {
    if (queue->capture) {
      queue->capture->invalid = true;
      return violation(*capture, cudaErrorStreamCaptureMerge);
    }
    queue->capture = capture;
    queue->lane = static_cast<unsigned>(capture->streams.size());
    capture->streams.push_back(queue);
  }
  std::set<std::size_t> merged(queue->frontier.begin(), queue->frontier.end());
  merged.insert(frontier.begin(), frontier.end());
  queue->frontier.assign(merged.begin(), merged.end());
  return cudaSuccess;
}

inline cudaError_t wait_event(cudaStream_t stream, cudaEvent_t event) {
  Stream queue;
  if (!runtime().handles.events.contains(event)) return cudaErrorInvalidResourceHandle;
  if (const auto& capture = event->capture) {
    if (capture->ended) return cudaErrorCapturedEvent;
    if (capture->invalid) return cudaErrorStreamCaptureInvalidated;
  }
  if (const auto error = find_queue(stream, queue)) return error;
  if (event->capture) return join_capture(queue, event->capture, event->frontier);
  if (queue->capture) return violation(*queue->capture, cudaErrorStreamCaptureIsolation);
  if (!event->mark.stream) return cudaSuccess;
  Operation operation{Work::wait, "cudaStreamWaitEvent", [] {}};
  operation.before = {event->mark};
  push(queue, std::move(operation));
  return cudaSuccess;
}

inline cudaError_t elapsed(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  for (const cudaEvent_t event : {start, end}) {
    if (const auto error = check_event(event)) return error;
    if (!event->time || !event->timing) return cudaErrorInvalidResourceHandle;
  }
  for (const cudaEvent_t event : {start, end})
    if (event->mark.stream->done < event->mark.count) return cudaErrorNotReady;
  *milliseconds = std::chrono::duration<float, std::milli>(*end->time - *start->time).count();
  return cudaSuccess;
}

}  // namespace typeformer

TYPEFORMER_SIMT_C cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  const typeformer::simt::Call call("cudaEventCreateWithFlags");
  constexpr unsigned known = cudaEventBlockingSync | cudaEventDisableTiming | cudaEventInterprocess;
  if (call.error) return call.error;
  if (!event || (flags & ~known) || ((flags & cudaEventInterprocess) && !(flags & cudaEventDisableTiming)))
    return typeformer::simt::status(cudaErrorInvalidValue);
  *event = new CUevent_st{};
  (*event)->timing = !(flags & cudaEventDisableTiming);
  typeformer::simt::runtime().handles.events.insert(*event);
  return cudaSuccess;
}
TYPEFORMER_SIMT_C cudaError_t cudaEventCreate(cudaEvent_t* event) {
  const typeformer::simt::Call call("cudaEventCreate");
  return call.error ? call.error : cudaEventCreateWithFlags(event, cudaEventDefault);
}
TYPEFORMER_SIMT_C cudaError_t cudaEventDestroy(cudaEvent_t event) {
  const typeformer::simt::Call call("cudaEventDestroy", typeformer::simt::Effect::releases);
  if (!typeformer::simt::runtime().handles.events.erase(event)) return call.end(cudaErrorInvalidResourceHandle);
  delete event;
  return call.end(cudaSuccess);
}
TYPEFORMER_SIMT_C cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream TYPEFORMER_SIMT_DEFAULT(nullptr)) {
  const typeformer::simt::Call call("cudaEventRecord");
  return call.error ? call.error : typeformer::simt::status(typeformer::simt::record(event, stream));
}
TYPEFORMER_SIMT_C cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  const typeformer::simt::Call call("cudaEventSynchronize");
  if (call.error) return call.error;
  if (const auto error = typeformer::simt::check_event(event)) return typeformer::simt::status(error);
  if (const auto error = typeformer::simt::unsafe_call()) return typeformer::simt::status(error);
  return typeformer::simt::wait_for(event->mark);
}
/// One operation of the event's stream runs for each question.
TYPEFORMER_SIMT_C cudaError_t cudaEventQuery(cudaEvent_t event) {
  const typeformer::simt::Call call("cudaEventQuery");
  if (call.error) return call.error;
  if (const auto error = typeformer::simt::check_event(event)) return typeformer::simt::status(error);
  if (const auto error = typeformer::simt::unsafe_call()) return typeformer::simt::status(error);
  return typeformer::simt::ask(event->mark);
}
/// Milliseconds on the host between the two: no measure of a GPU.
TYPEFORMER_SIMT_C cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  const typeformer::simt::Call call("cudaEventElapsedTime");
  if (call.error) return call.error;
  if (!milliseconds) return typeformer::simt::status(cudaErrorInvalidValue);
  const cudaError_t result = typeformer::simt::elapsed(milliseconds, start, end);
  return result == cudaErrorNotReady ? result : typeformer::simt::status(result);
}
TYPEFORMER_SIMT_C cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event,
                                                  unsigned flags TYPEFORMER_SIMT_DEFAULT(0)) {
  const typeformer::simt::Call call("cudaStreamWaitEvent");
  if (call.error) return call.error;
  if (flags != cudaEventWaitDefault) return typeformer::simt::status(cudaErrorNotSupported);
  return typeformer::simt::status(typeformer::simt::wait_event(stream, event));
}
