/// Stand-in for the CUDA runtime functions that a library calls. Like the real ones they report by status; a kernel's
/// Fault is thrown by those that wait (cudaStreamSynchronize, cudaDeviceSynchronize, cudaEventSynchronize, cudaMemcpy,
/// cudaMemset), unless faults are sticky (injection.hpp). Those that destructors call (cudaFree, cudaStreamDestroy,
/// cudaEventDestroy) never throw. Copies to the host are always deferred; a copy from pageable host memory reads it at
/// the call, from pinned memory late. There are two equal GPUs: kernels, fills and records of events want the stream's
/// GPU to be current, copies do not mind.
#pragma once
#include "typeformer/simt/calls.hpp"
#include "typeformer/simt/error_text.hpp"

namespace typeformer::inline TYPEFORMER_ABI::simt {

inline bool is_gpu(int ordinal) { return ordinal >= 0 && ordinal < gpu_count; }

inline int attribute_value(cudaDeviceAttr attribute, bool& known) {
  known = true;
  switch (attribute) {
    case cudaDevAttrMaxThreadsPerBlock:
      return 1024;
    case cudaDevAttrMaxSharedMemoryPerBlock:
      return static_cast<int>(options().shared_default);
    case cudaDevAttrWarpSize:
      return 32;
    case cudaDevAttrMaxRegistersPerBlock:
    case cudaDevAttrMaxRegistersPerMultiprocessor:
      return 65536;
    case cudaDevAttrMultiProcessorCount:
      return 108;
    case cudaDevAttrL2CacheSize:
      return 40 << 20;
    case cudaDevAttrMaxThreadsPerMultiProcessor:
      return 2048;
    case cudaDevAttrMaxBlocksPerMultiprocessor:
      return 32;
    case cudaDevAttrComputeCapabilityMajor:
      return 8;
    case cudaDevAttrComputeCapabilityMinor:
      return 0;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor:
      return static_cast<int>(options().shared_limit + 1024);
    case cudaDevAttrReservedSharedMemoryPerBlock:
      return 1024;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
      return static_cast<int>(options().shared_limit);
    case cudaDevAttrMemoryPoolsSupported:
      return 1;
    default:
      known = false;
      return 0;
  }
}
inline int attribute_value(cudaDeviceAttr attribute) {
  bool known = false;
  return attribute_value(attribute, known);
}

inline void describe_gpu(cudaDeviceProp& properties) {
  properties = cudaDeviceProp{};
  std::strncpy(properties.name, "typeformer simt host layer", sizeof properties.name - 1);
  properties.totalGlobalMem = runtime().memory_limit;
  properties.sharedMemPerBlock = options().shared_default;
  properties.sharedMemPerBlockOptin = options().shared_limit;
  properties.sharedMemPerMultiprocessor = options().shared_limit + 1024;
  properties.reservedSharedMemPerBlock = 1024;
  properties.regsPerBlock = properties.regsPerMultiprocessor = attribute_value(cudaDevAttrMaxRegistersPerBlock);
  properties.warpSize = 32;
  properties.maxThreadsPerBlock = attribute_value(cudaDevAttrMaxThreadsPerBlock);
  properties.maxThreadsPerMultiProcessor = attribute_value(cudaDevAttrMaxThreadsPerMultiProcessor);
  properties.maxBlocksPerMultiProcessor = attribute_value(cudaDevAttrMaxBlocksPerMultiprocessor);
  properties.major = attribute_value(cudaDevAttrComputeCapabilityMajor);
  properties.minor = attribute_value(cudaDevAttrComputeCapabilityMinor);
  properties.multiProcessorCount = attribute_value(cudaDevAttrMultiProcessorCount);
  properties.l2CacheSize = attribute_value(cudaDevAttrL2CacheSize);
}

/// Bytes of dynamic shared memory that a launch of the kernel may ask for on the current GPU.
inline std::size_t dynamic_limit_of(const void* kernel) {
  const auto& limits = runtime().dynamic_limit;
  const auto granted = limits.find({current_gpu, kernel});
  return std::max(granted == limits.end() ? 0 : static_cast<std::size_t>(granted->second), options().shared_default);
}

/// Gives up all that the current GPU has.
inline void reset_gpu() {
  Runtime& device = runtime();
  drop_all(device);
  const int gpu = current_gpu;
  for (const auto& capture : std::vector(device.captures)) end_capture(capture);
  std::erase_if(device.streams,
                [&](const Stream& queue) { return queue->gpu == gpu && queue != device.null_streams[gpu]; });
  std::erase_if(device.handles.streams, [&](const void* handle) {
    const auto* stream = static_cast<const CUstream_st*>(handle);
    const bool mine = stream->queue->gpu == gpu;
    if (mine) delete stream;
    return mine;
  });
  std::erase_if(device.handles.events, [&](const void* handle) {
    const auto* event = static_cast<const CUevent_st*>(handle);
    const bool mine = event->gpu == gpu;
    if (mine) delete event;
    return mine;
  });
  std::erase_if(device.dynamic_limit, [&](const auto& item) { return item.first.first == gpu; });
  device.memory.release_all(gpu);
  std::erase_if(device.pinned, [&](const auto& item) {
    if (item.second.gpu == gpu) std::free(item.first);
    return item.second.gpu == gpu;
  });
  device.sticky = device.last_error = cudaSuccess;
}

}  // namespace typeformer

// ---------------------------------------------------------------- errors

TYPEFORMER_SIMT_C cudaError_t cudaPeekAtLastError() {
  const std::lock_guard lock(typeformer::simt::runtime().mutex);
  const auto& device = typeformer::simt::runtime();
  return device.sticky ? device.sticky : device.last_error;
}
TYPEFORMER_SIMT_C cudaError_t cudaGetLastError() {
  const std::lock_guard lock(typeformer::simt::runtime().mutex);
  const cudaError_t result = cudaPeekAtLastError();
  typeformer::simt::runtime().last_error = cudaSuccess;
  return result;
}
TYPEFORMER_SIMT_C const char* cudaGetErrorString(cudaError_t error) { return typeformer::simt::error_text(error).text; }
TYPEFORMER_SIMT_C const char* cudaGetErrorName(cudaError_t error) { return typeformer::simt::error_text(error).name; }

// ---------------------------------------------------------------- the GPUs: imaginary ones of sm_80

TYPEFORMER_SIMT_C cudaError_t cudaGetDeviceCount(int* count) {
  const typeformer::simt::Call call("cudaGetDeviceCount");
  if (!call.error) *count = typeformer::simt::gpu_count;
  return call.error;
}
TYPEFORMER_SIMT_C cudaError_t cudaGetDevice(int* device) {
  const typeformer::simt::Call call("cudaGetDevice");
  if (!call.error) *device = typeformer::simt::current_gpu;
  return call.error;
}
TYPEFORMER_SIMT_C cudaError_t cudaSetDevice(int device) {
  const typeformer::simt::Call call("cudaSetDevice");
  if (call.error) return call.error;
  if (!typeformer::simt::is_gpu(device)) return typeformer::simt::status(cudaErrorInvalidDevice);
  typeformer::simt::current_gpu = device;
  return cudaSuccess;
}
TYPEFORMER_SIMT_C cudaError_t cudaDeviceReset() {
  const typeformer::simt::Call call("cudaDeviceReset");
  typeformer::simt::reset_gpu();
  return cudaSuccess;
}
TYPEFORMER_SIMT_C cudaError_t cudaRuntimeGetVersion(int* version) {
  const typeformer::simt::Call call("cudaRuntimeGetVersion");
  if (!call.error) *version = 13000;
  return call.error;
}
TYPEFORMER_SIMT_C cudaError_t cudaDriverGetVersion(int* version) {
  const typeformer::simt::Call call("cudaDriverGetVersion");
  if (!call.error) *version = 13000;
  return call.error;
}
TYPEFORMER_SIMT_C cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  const typeformer::simt::Call call("cudaDeviceGetAttribute");
  if (call.error) return call.error;
  if (!typeformer::simt::is_gpu(device)) return typeformer::simt::status(cudaErrorInvalidDevice);
  bool known = false;
  *value = typeformer::simt::attribute_value(attribute, known);
  return typeformer::simt::status(known ? cudaSuccess : cudaErrorInvalidValue);
}
TYPEFORMER_SIMT_C cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  const typeformer::simt::Call call("cudaGetDeviceProperties");
  if (call.error) return call.error;
  if (!typeformer::simt::is_gpu(device)) return typeformer::simt::status(cudaErrorInvalidDevice);
  typeformer::simt::describe_gpu(*properties);
  return cudaSuccess;
}

// ---------------------------------------------------------------- kernels

TYPEFORMER_SIMT_C cudaError_t cudaFuncSetAttribute(const void* kernel, cudaFuncAttribute attribute, int value) {
  const typeformer::simt::Call call("cudaFuncSetAttribute");
  if (call.error) return call.error;
  if (attribute == cudaFuncAttributePreferredSharedMemoryCarveout) return cudaSuccess;
  if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize || !kernel || value < 0 ||
      static_cast<std::size_t>(value) > typeformer::simt::options().shared_limit)
    return typeformer::simt::status(cudaErrorInvalidValue);
  typeformer::simt::runtime().dynamic_limit[{typeformer::simt::current_gpu, kernel}] = value;
  return cudaSuccess;
}
/// What the host can know of a kernel: its limits, neither registers nor static shared memory.
TYPEFORMER_SIMT_C cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* kernel) {
  const typeformer::simt::Call call("cudaFuncGetAttributes");
  if (call.error) return call.error;
  if (!attributes || !kernel) return typeformer::simt::status(cudaErrorInvalidDeviceFunction);
  *attributes = cudaFuncAttributes{};
  attributes->maxThreadsPerBlock = 1024;
  attributes->maxDynamicSharedSizeBytes = static_cast<int>(typeformer::simt::dynamic_limit_of(kernel));
  attributes->binaryVersion = attributes->ptxVersion = 80;
  return cudaSuccess;
}
/// By threads, blocks and dynamic shared memory: the host knows no registers.
TYPEFORMER_SIMT_C cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* kernel,
                                                                            int block_threads,
                                                                            std::size_t dynamic_bytes) {
  const typeformer::simt::Call call("cudaOccupancyMaxActiveBlocksPerMultiprocessor");
  if (call.error) return call.error;
  if (!blocks || !kernel || block_threads < 1) return typeformer::simt::status(cudaErrorInvalidValue);
  const auto threads = static_cast<std::size_t>(block_threads + 31) / 32 * 32;
  const std::size_t shared = (dynamic_bytes + 127) / 128 * 128 + 1024;  // in units of 128 bytes, 1 KiB for the system
  const bool fits = block_threads <= 1024 && dynamic_bytes <= typeformer::simt::dynamic_limit_of(kernel);
  *blocks = fits ? static_cast<int>(std::min(
                       {std::size_t{32}, 2048 / threads, (typeformer::simt::options().shared_limit + 1024) / shared}))
                 : 0;
  return cudaSuccess;
}

// ---------------------------------------------------------------- waiting

TYPEFORMER_SIMT_C cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  const typeformer::simt::Call call("cudaStreamSynchronize");
  typeformer::simt::Stream queue;
  if (call.error) return call.error;
  if (const auto error = typeformer::simt::find_waited(stream, queue)) return typeformer::simt::status(error);
  return typeformer::simt::wait_for(typeformer::simt::end_of(queue));
}
TYPEFORMER_SIMT_C cudaError_t cudaDeviceSynchronize() {
  const typeformer::simt::Call call("cudaDeviceSynchronize");
  auto& device = typeformer::simt::runtime();
  if (call.error) return call.error;
  for (const auto& capture : device.captures)
    for (const auto& queue : capture->streams)
      if (queue->gpu == typeformer::simt::current_gpu)
        return typeformer::simt::status(typeformer::simt::violation(*capture, cudaErrorStreamCaptureUnsupported));
  if (const auto error = typeformer::simt::unsafe_call()) return typeformer::simt::status(error);
  for (const auto& queue : std::set(device.streams))
    if (queue->gpu == typeformer::simt::current_gpu)
      if (const auto error = typeformer::simt::wait_for(typeformer::simt::end_of(queue))) return error;
  return cudaSuccess;
}
TYPEFORMER_SIMT_C cudaError_t cudaStreamQuery(cudaStream_t stream) {
  const typeformer::simt::Call call("cudaStreamQuery");
  typeformer::simt::Stream queue;
  if (call.error) return call.error;
  if (const auto error = typeformer::simt::find_waited(stream, queue)) return typeformer::simt::status(error);
  return typeformer::simt::ask(typeformer::simt::end_of(queue));
}

// ---------------------------------------------------------------- streams

TYPEFORMER_SIMT_C cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  const typeformer::simt::Call call("cudaStreamCreateWithFlags");
  auto& device = typeformer::simt::runtime();
  if (call.error) return call.error;
  if (!stream || flags > cudaStreamNonBlocking) return typeformer::simt::status(cudaErrorInvalidValue);
  *stream = new CUstream_st{std::make_shared<typeformer::simt::StreamQueue>()};
  (*stream)->queue->non_blocking = flags == cudaStreamNonBlocking;
  (*stream)->queue->sequence = device.sequences.take();
  device.streams.insert((*stream)->queue);
  device.handles.streams.insert(*stream);
  return cudaSuccess;
}
TYPEFORMER_SIMT_C cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  const typeformer::simt::Call call("cudaStreamCreate");
  return call.error ? call.error : cudaStreamCreateWithFlags(stream, cudaStreamDefault);
}
TYPEFORMER_SIMT_C cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int) {
  const typeformer::simt::Call call("cudaStreamCreateWithPriority");
  return call.error ? call.error : cudaStreamCreateWithFlags(stream, flags);
}
/// Returns at once, as CUDA's: what is queued runs when something waits for it. A capture of the stream is over.
TYPEFORMER_SIMT_C cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  const typeformer::simt::Call call("cudaStreamDestroy", typeformer::simt::Effect::releases);
  auto& device = typeformer::simt::runtime();
  if (!device.handles.streams.erase(stream)) return call.end(cudaErrorInvalidResourceHandle);
  const auto queue = stream->queue;
  if (const auto capture = queue->capture) {
    capture->invalid = true;
    if (capture->origin == queue) typeformer::simt::end_capture(capture);
  }
  queue->destroyed = true;
  typeformer::simt::forget_when_done(queue);
  delete stream;
  return call.end(cudaSuccess);
}

#include "typeformer/simt/events.hpp"
#include "typeformer/simt/graphs.hpp"
#include "typeformer/simt/runtime_memory.hpp"
