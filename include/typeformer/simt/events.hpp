/// Events and captured graphs of the CUDA runtime's stand-in. Included by runtime.hpp.
#pragma once
#include "typeformer/simt/streams.hpp"

TYPEFORMER_SIMT_C cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  if (!event) return typeformer::simt::status(cudaErrorInvalidValue);
  *event = new CUevent_st{};
  (*event)->timing = !(flags & cudaEventDisableTiming);
  return cudaSuccess;
}
TYPEFORMER_SIMT_C cudaError_t cudaEventCreate(cudaEvent_t* event) {
  return cudaEventCreateWithFlags(event, cudaEventDefault);
}
TYPEFORMER_SIMT_C cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return cudaSuccess;
}
TYPEFORMER_SIMT_C cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  const std::lock_guard lock(typeformer::simt::runtime().mutex);
  if (!event) return typeformer::simt::status(cudaErrorInvalidResourceHandle);
  const auto queue = typeformer::simt::queue_of(stream);
  if (queue->gpu != event->gpu) return typeformer::simt::status(cudaErrorInvalidResourceHandle);
  event->capture = queue->capture;
  if (queue->capture) return cudaSuccess;  // a captured graph keeps the order of its calls
  auto time = std::make_shared<std::chrono::steady_clock::time_point>();
  typeformer::simt::push(queue, [time] { *time = std::chrono::steady_clock::now(); });
  event->mark = {queue, queue->pushed};
  event->time = time;
  return cudaSuccess;
}
TYPEFORMER_SIMT_C cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  const std::lock_guard lock(typeformer::simt::runtime().mutex);
  if (!event) return typeformer::simt::status(cudaErrorInvalidResourceHandle);
  typeformer::simt::wait_for(event->mark);
  return cudaSuccess;
}
TYPEFORMER_SIMT_C cudaError_t cudaEventQuery(cudaEvent_t event) {
  const std::lock_guard lock(typeformer::simt::runtime().mutex);
  if (!event) return typeformer::simt::status(cudaErrorInvalidResourceHandle);
  const auto& mark = event->mark;
  if (!mark.stream || mark.stream->done >= mark.count) return cudaSuccess;
  typeformer::simt::wait_for({mark.stream, mark.stream->done + 1});  // one task per question
  return mark.stream->done >= mark.count ? cudaSuccess : cudaErrorNotReady;
}
/// Milliseconds on the host between the two: no measure of a GPU.
TYPEFORMER_SIMT_C cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  const std::lock_guard lock(typeformer::simt::runtime().mutex);
  if (!start || !end || !start->time || !end->time || !start->timing || !end->timing)
    return typeformer::simt::status(cudaErrorInvalidResourceHandle);
  for (const auto* event : {start, end})
    if (event->mark.stream->done < event->mark.count) return cudaErrorNotReady;
  *milliseconds = std::chrono::duration<float, std::milli>(*end->time - *start->time).count();
  return cudaSuccess;
}
TYPEFORMER_SIMT_C cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  const std::lock_guard lock(typeformer::simt::runtime().mutex);
  if (!event) return typeformer::simt::status(cudaErrorInvalidResourceHandle);
  const auto queue = typeformer::simt::queue_of(stream);
  if (event->capture) {  // the stream joins the capture
    queue->capture = event->capture;
    return cudaSuccess;
  }
  if (queue->capture) return typeformer::simt::status(cudaErrorStreamCaptureUnsupported);
  if (!event->mark.stream) return cudaSuccess;
  typeformer::simt::push(queue, [mark = event->mark] { typeformer::simt::run_until(mark.stream, mark.count); });
  return cudaSuccess;
}

// ---------------------------------------------------------------- graphs

TYPEFORMER_SIMT_C cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  const std::lock_guard lock(typeformer::simt::runtime().mutex);
  if (!stream)
    return typeformer::simt::status(cudaErrorStreamCaptureUnsupported);  // the null stream cannot be captured
  if (stream->queue->capture) return typeformer::simt::status(cudaErrorStreamCaptureUnsupported);
  stream->queue->capture = new std::vector<typeformer::simt::Task>;
  stream->queue->capture_origin = true;
  return cudaSuccess;
}
TYPEFORMER_SIMT_C cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* state) {
  const std::lock_guard lock(typeformer::simt::runtime().mutex);
  *state = typeformer::simt::queue_of(stream)->capture ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
  return cudaSuccess;
}
TYPEFORMER_SIMT_C cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  auto& device = typeformer::simt::runtime();
  const std::lock_guard lock(device.mutex);
  const auto queue = typeformer::simt::queue_of(stream);
  if (!graph || !queue->capture || !queue->capture_origin) return typeformer::simt::status(cudaErrorInvalidValue);
  const std::unique_ptr<std::vector<typeformer::simt::Task>> tasks(queue->capture);
  for (const auto& other : device.streams)
    if (other->capture == tasks.get()) other->capture = nullptr;
  queue->capture_origin = false;
  *graph = new CUgraph_st{std::move(*tasks)};
  return cudaSuccess;
}
TYPEFORMER_SIMT_C cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph, unsigned long long) {
  if (!executable || !graph) return typeformer::simt::status(cudaErrorInvalidValue);
  *executable = new CUgraphExec_st{graph->tasks};
  return cudaSuccess;
}
TYPEFORMER_SIMT_C cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
  const std::lock_guard lock(typeformer::simt::runtime().mutex);
  if (!executable) return typeformer::simt::status(cudaErrorInvalidValue);
  for (const auto& task : executable->tasks) typeformer::simt::push(typeformer::simt::queue_of(stream), task);
  return cudaSuccess;
}
TYPEFORMER_SIMT_C cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  delete executable;
  return cudaSuccess;
}
TYPEFORMER_SIMT_C cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  return cudaSuccess;
}
