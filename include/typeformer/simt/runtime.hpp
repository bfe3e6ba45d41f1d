/// Stand-in for the CUDA runtime functions that a library calls. Like the real ones they report by status; a kernel's
/// Fault is thrown by those that wait (cudaStreamSynchronize, cudaDeviceSynchronize, cudaEventSynchronize, cudaMemcpy,
/// cudaMemset). Those that destructors call (cudaFree, cudaStreamDestroy, cudaEventDestroy) never throw. Copies to the
/// host are always deferred; a copy from pageable host memory reads it at the call, from pinned memory late. There are
/// two equal GPUs: kernels, fills and records of events want the stream's GPU to be current, copies do not mind.
#pragma once
#include "typeformer/simt/streams.hpp"

namespace typeformer::inline TYPEFORMER_ABI::simt {

/// Waits without throwing: for functions that destructors call.
inline cudaError_t wait_quietly(const Mark& mark) noexcept {
  try {
    wait_for(mark);
    return cudaSuccess;
  } catch (const std::exception&) {
    return status(cudaErrorLaunchFailure);
  }
}

inline Mark end_of(const Stream& queue) { return {queue, queue->pushed}; }

inline cudaError_t check_copy(const void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  const DeviceMemory& memory = runtime().memory;
  const bool to_device = memory.contains(to), from_device = memory.contains(from);
  if (bytes && (!to || !from)) return cudaErrorInvalidValue;
  if (to_device && !memory.valid(to, bytes)) return cudaErrorInvalidValue;
  if (from_device && !memory.valid(from, bytes)) return cudaErrorInvalidValue;
  switch (kind) {
    case cudaMemcpyHostToHost:
      return to_device || from_device ? cudaErrorInvalidValue : cudaSuccess;
    case cudaMemcpyHostToDevice:
      return !to_device || from_device ? cudaErrorInvalidValue : cudaSuccess;
    case cudaMemcpyDeviceToHost:
      return to_device || !from_device ? cudaErrorInvalidValue : cudaSuccess;
    case cudaMemcpyDeviceToDevice:
      return to_device && from_device ? cudaSuccess : cudaErrorInvalidValue;
    case cudaMemcpyDefault:
      return cudaSuccess;
  }
  return cudaErrorInvalidMemcpyDirection;
}

/// Queues a copy whose arguments are checked.
inline void push_copy(const Stream& queue, void* to, const void* from, std::size_t bytes) {
  Runtime& device = runtime();
  if (bytes == 0) return;
  if (device.memory.contains(from) || device.is_pinned(from) || queue->capture)
    return push(queue, [=] { std::memmove(to, from, bytes); });
  const auto* first = static_cast<const char*>(from);
  push(queue, [to, staged = std::make_shared<std::vector<char>>(first, first + bytes)] {
    std::memcpy(to, staged->data(), staged->size());
  });
}

inline bool is_gpu(int ordinal) { return ordinal >= 0 && ordinal < gpu_count; }

inline cudaError_t allocate_on(int gpu, void** pointer, std::size_t bytes) {
  if (!pointer) return status(cudaErrorInvalidValue);
  *pointer = bytes ? runtime().memory.allocate(bytes, gpu) : nullptr;
  return status(*pointer || !bytes ? cudaSuccess : cudaErrorMemoryAllocation);
}

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
      return 65536;
    case cudaDevAttrMultiProcessorCount:
      return 108;
    case cudaDevAttrL2CacheSize:
      return 40 << 20;
    case cudaDevAttrMaxThreadsPerMultiProcessor:
      return 2048;
    case cudaDevAttrComputeCapabilityMajor:
      return 8;
    case cudaDevAttrComputeCapabilityMinor:
      return 0;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor:
      return static_cast<int>(options().shared_limit + 1024);
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
      return static_cast<int>(options().shared_limit);
    case cudaDevAttrMemoryPoolsSupported:
      return 1;
    default:
      known = false;
      return 0;
  }
}

}  // namespace typeformer

// ---------------------------------------------------------------- errors and the GPUs: imaginary ones of sm_80

TYPEFORMER_SIMT_C cudaError_t cudaGetLastError() {
  const std::lock_guard lock(typeformer::simt::runtime().mutex);
  return std::exchange(typeformer::simt::runtime().last_error, cudaSuccess);
}
TYPEFORMER_SIMT_C cudaError_t cudaPeekAtLastError() {
  const std::lock_guard lock(typeformer::simt::runtime().mutex);
  return typeformer::simt::runtime().last_error;
}
TYPEFORMER_SIMT_C const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return "no error";
    case cudaErrorInvalidValue:
      return "invalid argument";
    case cudaErrorMemoryAllocation:
      return "out of memory";
    case cudaErrorInvalidConfiguration:
      return "invalid configuration argument";
    case cudaErrorInvalidDevice:
      return "invalid device ordinal";
    case cudaErrorInvalidResourceHandle:
      return "invalid resource handle";
    case cudaErrorNotReady:
      return "device not ready";
    case cudaErrorLaunchFailure:
      return "unspecified launch failure";
    case cudaErrorNotSupported:
      return "operation not supported";
    case cudaErrorStreamCaptureUnsupported:
      return "operation not permitted when stream is capturing";
    default:
      return "unrecognized error code";
  }
}
TYPEFORMER_SIMT_C cudaError_t cudaGetDeviceCount(int* count) {
  *count = typeformer::simt::gpu_count;
  return cudaSuccess;
}
TYPEFORMER_SIMT_C cudaError_t cudaGetDevice(int* device) {
  *device = typeformer::simt::current_gpu;
  return cudaSuccess;
}
TYPEFORMER_SIMT_C cudaError_t cudaSetDevice(int device) {
  if (!typeformer::simt::is_gpu(device)) return typeformer::simt::status(cudaErrorInvalidDevice);
  typeformer::simt::current_gpu = device;
  return cudaSuccess;
}
TYPEFORMER_SIMT_C cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = 13000;
  return cudaSuccess;
}
TYPEFORMER_SIMT_C cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  bool known = false;
  if (!typeformer::simt::is_gpu(device)) return typeformer::simt::status(cudaErrorInvalidDevice);
  *value = typeformer::simt::attribute_value(attribute, known);
  return typeformer::simt::status(known ? cudaSuccess : cudaErrorInvalidValue);
}
TYPEFORMER_SIMT_C cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  if (!typeformer::simt::is_gpu(device)) return typeformer::simt::status(cudaErrorInvalidDevice);
  const auto get = [](cudaDeviceAttr attribute) {
    bool known = false;
    return typeformer::simt::attribute_value(attribute, known);
  };
  *properties = cudaDeviceProp{};
  std::strncpy(properties->name, "typeformer simt host layer", sizeof properties->name - 1);
  properties->totalGlobalMem = typeformer::simt::DeviceMemory::capacity;
  properties->sharedMemPerBlock = typeformer::simt::options().shared_default;
  properties->sharedMemPerBlockOptin = typeformer::simt::options().shared_limit;
  properties->sharedMemPerMultiprocessor = typeformer::simt::options().shared_limit + 1024;
  properties->regsPerBlock = properties->regsPerMultiprocessor = get(cudaDevAttrMaxRegistersPerBlock);
  properties->warpSize = 32;
  properties->maxThreadsPerBlock = get(cudaDevAttrMaxThreadsPerBlock);
  properties->maxThreadsPerMultiProcessor = get(cudaDevAttrMaxThreadsPerMultiProcessor);
  properties->major = get(cudaDevAttrComputeCapabilityMajor);
  properties->minor = get(cudaDevAttrComputeCapabilityMinor);
  properties->multiProcessorCount = get(cudaDevAttrMultiProcessorCount);
  properties->l2CacheSize = get(cudaDevAttrL2CacheSize);
  return cudaSuccess;
}
TYPEFORMER_SIMT_C cudaError_t cudaFuncSetAttribute(const void* kernel, cudaFuncAttribute attribute, int value) {
  auto& device = typeformer::simt::runtime();
  const std::lock_guard lock(device.mutex);
  if (attribute == cudaFuncAttributePreferredSharedMemoryCarveout) return cudaSuccess;
  if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize || !kernel || value < 0 ||
      static_cast<std::size_t>(value) > typeformer::simt::options().shared_limit)
    return typeformer::simt::status(cudaErrorInvalidValue);
  device.dynamic_limit[{typeformer::simt::current_gpu, kernel}] = value;
  return cudaSuccess;
}

// ---------------------------------------------------------------- waiting

TYPEFORMER_SIMT_C cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  const std::lock_guard lock(typeformer::simt::runtime().mutex);
  const auto queue = typeformer::simt::queue_of(stream);
  if (queue->capture) return typeformer::simt::status(cudaErrorStreamCaptureUnsupported);
  typeformer::simt::wait_for(typeformer::simt::end_of(queue));
  return cudaSuccess;
}
TYPEFORMER_SIMT_C cudaError_t cudaDeviceSynchronize() {
  auto& device = typeformer::simt::runtime();
  const std::lock_guard lock(device.mutex);
  for (const auto& queue : device.streams)
    if (queue->capture) return typeformer::simt::status(cudaErrorStreamCaptureUnsupported);
  for (const auto& queue : std::set(device.streams))
    if (queue->gpu == typeformer::simt::current_gpu) typeformer::simt::wait_for(typeformer::simt::end_of(queue));
  return cudaSuccess;
}
TYPEFORMER_SIMT_C cudaError_t cudaStreamQuery(cudaStream_t stream) {
  const std::lock_guard lock(typeformer::simt::runtime().mutex);
  const auto queue = typeformer::simt::queue_of(stream);
  if (queue->done < queue->pushed) typeformer::simt::wait_for({queue, queue->done + 1});  // one task per question
  return queue->done < queue->pushed ? cudaErrorNotReady : cudaSuccess;
}

// ---------------------------------------------------------------- memory

TYPEFORMER_SIMT_C cudaError_t cudaMalloc(void** pointer, std::size_t bytes) {
  const std::lock_guard lock(typeformer::simt::runtime().mutex);
  return typeformer::simt::allocate_on(typeformer::simt::current_gpu, pointer, bytes);
}
TYPEFORMER_SIMT_C cudaError_t cudaMallocAsync(void** pointer, std::size_t bytes, cudaStream_t stream) {
  const std::lock_guard lock(typeformer::simt::runtime().mutex);
  return typeformer::simt::allocate_on(typeformer::simt::queue_of(stream)->gpu, pointer, bytes);
}
TYPEFORMER_SIMT_C cudaError_t cudaFree(void* pointer) {
  auto& device = typeformer::simt::runtime();
  const std::lock_guard lock(device.mutex);
  cudaError_t result = cudaSuccess;
  for (const auto& queue : std::set(device.streams))
    if (const auto error = typeformer::simt::wait_quietly(typeformer::simt::end_of(queue))) result = error;
  if (pointer && !device.memory.release(pointer)) return typeformer::simt::status(cudaErrorInvalidValue);
  return result;
}
TYPEFORMER_SIMT_C cudaError_t cudaFreeAsync(void* pointer, cudaStream_t stream) {
  auto& device = typeformer::simt::runtime();
  const std::lock_guard lock(device.mutex);
  if (!pointer) return cudaSuccess;
  if (!device.memory.valid(pointer, 0)) return typeformer::simt::status(cudaErrorInvalidValue);
  typeformer::simt::push(typeformer::simt::queue_of(stream), [&device, pointer] { device.memory.release(pointer); });
  return cudaSuccess;
}
TYPEFORMER_SIMT_C cudaError_t cudaHostAlloc(void** pointer, std::size_t bytes, unsigned) {
  auto& device = typeformer::simt::runtime();
  const std::lock_guard lock(device.mutex);
  *pointer = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  if (!*pointer) return typeformer::simt::status(cudaErrorMemoryAllocation);
  device.pinned[static_cast<char*>(*pointer)] = bytes;
  return cudaSuccess;
}
TYPEFORMER_SIMT_C cudaError_t cudaMallocHost(void** pointer, std::size_t bytes) {
  return cudaHostAlloc(pointer, bytes, cudaHostAllocDefault);
}
TYPEFORMER_SIMT_C cudaError_t cudaFreeHost(void* pointer) {
  auto& device = typeformer::simt::runtime();
  const std::lock_guard lock(device.mutex);
  if (!pointer) return cudaSuccess;
  if (!device.pinned.erase(static_cast<char*>(pointer))) return typeformer::simt::status(cudaErrorInvalidValue);
  std::free(pointer);
  return cudaSuccess;
}
TYPEFORMER_SIMT_C cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer) {
  const auto& device = typeformer::simt::runtime();
  const std::lock_guard lock(typeformer::simt::runtime().mutex);
  if (!attributes) return typeformer::simt::status(cudaErrorInvalidValue);
  const bool on_gpu = device.memory.contains(pointer) && device.memory.valid(pointer, 0);
  *attributes = cudaPointerAttributes{};
  attributes->type = on_gpu                      ? cudaMemoryTypeDevice
                     : device.is_pinned(pointer) ? cudaMemoryTypeHost
                                                 : cudaMemoryTypeUnregistered;
  attributes->device = on_gpu ? device.memory.gpu_of(pointer) : attributes->type == cudaMemoryTypeHost ? 0 : -2;
  attributes->devicePointer = attributes->type == cudaMemoryTypeUnregistered ? nullptr : const_cast<void*>(pointer);
  attributes->hostPointer = on_gpu ? nullptr : const_cast<void*>(pointer);
  return cudaSuccess;
}
TYPEFORMER_SIMT_C cudaError_t cudaMemGetInfo(std::size_t* free_bytes, std::size_t* total) {
  const std::lock_guard lock(typeformer::simt::runtime().mutex);
  *total = typeformer::simt::DeviceMemory::capacity;
  *free_bytes = *total - typeformer::simt::runtime().memory.used();
  return cudaSuccess;
}
TYPEFORMER_SIMT_C cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                                              cudaStream_t stream) {
  const std::lock_guard lock(typeformer::simt::runtime().mutex);
  if (const auto error = typeformer::simt::check_copy(to, from, bytes, kind)) return typeformer::simt::status(error);
  typeformer::simt::push_copy(typeformer::simt::queue_of(stream), to, from, bytes);
  return cudaSuccess;
}
TYPEFORMER_SIMT_C cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  if (const auto error = cudaMemcpyAsync(to, from, bytes, kind, nullptr)) return error;
  return cudaStreamSynchronize(nullptr);
}
TYPEFORMER_SIMT_C cudaError_t cudaMemcpy2DAsync(void* to, std::size_t to_pitch, const void* from,
                                                std::size_t from_pitch, std::size_t width, std::size_t height,
                                                cudaMemcpyKind kind, cudaStream_t stream) {
  if (width > to_pitch || width > from_pitch) return typeformer::simt::status(cudaErrorInvalidValue);
  for (std::size_t row = 0; row < height; ++row)
    if (const auto error = cudaMemcpyAsync(static_cast<char*>(to) + row * to_pitch,
                                           static_cast<const char*>(from) + row * from_pitch, width, kind, stream))
      return error;
  return cudaSuccess;
}
TYPEFORMER_SIMT_C cudaError_t cudaMemsetAsync(void* pointer, int value, std::size_t bytes, cudaStream_t stream) {
  auto& device = typeformer::simt::runtime();
  const std::lock_guard lock(device.mutex);
  if (bytes == 0) return cudaSuccess;
  if (!device.memory.valid(pointer, bytes) && !device.is_pinned(pointer))
    return typeformer::simt::status(cudaErrorInvalidValue);
  const auto queue = typeformer::simt::queue_of(stream);
  if (queue->gpu != typeformer::simt::current_gpu) return typeformer::simt::status(cudaErrorInvalidResourceHandle);
  typeformer::simt::push(queue, [=] { std::memset(pointer, value, bytes); });
  return cudaSuccess;
}
TYPEFORMER_SIMT_C cudaError_t cudaMemset(void* pointer, int value, std::size_t bytes) {
  if (const auto error = cudaMemsetAsync(pointer, value, bytes, nullptr)) return error;
  return cudaStreamSynchronize(nullptr);
}

// ---------------------------------------------------------------- streams

TYPEFORMER_SIMT_C cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  auto& device = typeformer::simt::runtime();
  const std::lock_guard lock(device.mutex);
  if (!stream || flags > cudaStreamNonBlocking) return typeformer::simt::status(cudaErrorInvalidValue);
  *stream = new CUstream_st{std::make_shared<typeformer::simt::StreamQueue>()};
  (*stream)->queue->non_blocking = flags == cudaStreamNonBlocking;
  device.streams.insert((*stream)->queue);
  return cudaSuccess;
}
TYPEFORMER_SIMT_C cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  return cudaStreamCreateWithFlags(stream, cudaStreamDefault);
}
TYPEFORMER_SIMT_C cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  auto& device = typeformer::simt::runtime();
  const std::lock_guard lock(device.mutex);
  if (!stream) return typeformer::simt::status(cudaErrorInvalidResourceHandle);
  const auto result = typeformer::simt::wait_quietly(typeformer::simt::end_of(stream->queue));
  device.streams.erase(stream->queue);
  delete stream;
  return result;
}
#include "typeformer/simt/events.hpp"
