/// Memory functions of the CUDA runtime's stand-in. Included by runtime.hpp.
#pragma once
#include "typeformer/simt/calls.hpp"

namespace typeformer::inline TYPEFORMER_ABI::simt {

/// A copy of `height` rows.
struct Copy {
  char* to = nullptr;
  std::size_t to_pitch = 0;
  const char* from = nullptr;
  std::size_t from_pitch = 0, width = 0, height = 1;

  static std::size_t extent(std::size_t pitch, std::size_t width, std::size_t height) {
    return width && height ? pitch * (height - 1) + width : 0;
  }
  void run() const {
    for (std::size_t row = 0; row < height; ++row) std::memmove(to + row * to_pitch, from + row * from_pitch, width);
  }
};

inline cudaError_t check_copy(const Copy& copy, cudaMemcpyKind kind) {
  const DeviceMemory& memory = runtime().memory;
  const std::size_t to_bytes = Copy::extent(copy.to_pitch, copy.width, copy.height),
                    from_bytes = Copy::extent(copy.from_pitch, copy.width, copy.height);
  const bool to_device = memory.contains(copy.to), from_device = memory.contains(copy.from);
  if (to_bytes && (!copy.to || !copy.from)) return cudaErrorInvalidValue;
  if (to_device && !memory.valid(copy.to, to_bytes)) return cudaErrorInvalidValue;
  if (from_device && !memory.valid(copy.from, from_bytes)) return cudaErrorInvalidValue;
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

/// Queues a copy whose arguments are checked. Pageable host memory is read now; by a captured copy at every replay.
inline void push_copy(const Stream& queue, const Copy& copy, const char* name) {
  const Runtime& device = runtime();
  if (copy.width == 0 || copy.height == 0) return;
  Operation operation{Work::copy, name};
  operation.bytes = copy.width * copy.height;
  operation.spans = {Span::write(copy.to, copy.width, copy.height, copy.to_pitch),
                     Span::read(copy.from, copy.width, copy.height, copy.from_pitch)};
  operation.run = [copy] { copy.run(); };
  if (!device.memory.contains(copy.from) && !device.is_pinned(copy.from) && !queue->capture) {
    auto staged = std::make_shared<std::vector<char>>(copy.width * copy.height);
    Copy in = copy, out = copy;
    in.to = staged->data();
    out.from = staged->data();
    in.to_pitch = out.from_pitch = copy.width;
    in.run();
    operation.spans.pop_back();
    operation.run = [out, staged] { out.run(); };
  }
  push(queue, std::move(operation));
}

inline cudaError_t copy_on(cudaStream_t stream, const Copy& copy, cudaMemcpyKind kind, const char* name) {
  Stream queue;
  if (const auto error = find_queue(stream, queue)) return status(error);
  if (copy.height > 1 && (copy.width > copy.to_pitch || copy.width > copy.from_pitch))
    return status(cudaErrorInvalidPitchValue);
  if (const auto error = check_copy(copy, kind)) return status(error);
  push_copy(queue, copy, name);
  return cudaSuccess;
}

/// Copies and waits; between two places on GPUs the host waits for nothing.
inline cudaError_t copy_now(const Copy& copy, cudaMemcpyKind kind, const char* name) {
  Stream queue;
  if (const auto error = find_queue(nullptr, queue)) return status(error);
  if (const auto error = unsafe_call()) return status(error);
  if (const auto error = copy_on(nullptr, copy, kind, name)) return error;
  const DeviceMemory& memory = runtime().memory;
  return memory.contains(copy.to) && memory.contains(copy.from) ? cudaSuccess : wait_for(end_of(queue));
}

inline cudaError_t fill_on(cudaStream_t stream, void* pointer, int value, std::size_t bytes, const char* name) {
  const Runtime& device = runtime();
  Stream queue;
  if (const auto error = find_queue(stream, queue)) return status(error);
  if (bytes == 0) return cudaSuccess;
  if (!device.memory.valid(pointer, bytes) && !device.is_pinned(pointer, bytes)) return status(cudaErrorInvalidValue);
  if (queue->gpu != current_gpu) return status(cudaErrorInvalidResourceHandle);
  Operation operation{Work::fill, name, [=] { std::memset(pointer, value, bytes); }};
  operation.spans = {Span::write(pointer, bytes)};
  operation.bytes = bytes;
  push(queue, std::move(operation));
  return cudaSuccess;
}

inline cudaError_t allocate_on(int gpu, void** pointer, std::size_t bytes) {
  Runtime& device = runtime();
  if (!pointer) return status(cudaErrorInvalidValue);
  *pointer = nullptr;
  if (bytes == 0) return cudaSuccess;
  const std::size_t used = device.memory.used(gpu);
  if (used <= device.memory_limit && bytes <= device.memory_limit - used) *pointer = device.memory.allocate(bytes, gpu);
  return status(*pointer ? cudaSuccess : cudaErrorMemoryAllocation);
}

/// Memory of a graph: there as long as the graph and what is instantiated from it.
inline cudaError_t allocate_captured(const Stream& queue, void** pointer, std::size_t bytes) {
  if (const auto error = allocate_on(queue->gpu, pointer, bytes)) return error;
  void* const memory = *pointer;
  const std::shared_ptr<void> owner(memory, [](void* it) { runtime().memory.release(it); });
  queue->capture->memory[memory] = owner;
  capture_node(*queue,
               {Work::allocation, "cudaMallocAsync", [owner, bytes] { std::memset(owner.get(), poison_byte, bytes); }});
  return cudaSuccess;
}
inline cudaError_t free_captured(const Stream& queue, void* pointer) {
  const auto& memory = queue->capture->memory;
  const auto found = memory.find(pointer);
  if (found == memory.end()) return status(cudaErrorInvalidValue);
  const std::size_t bytes = runtime().memory.size_of(pointer);
  capture_node(*queue, {Work::release, "cudaFreeAsync",
                        [owner = found->second, bytes] { std::memset(owner.get(), poison_byte, bytes); }});
  return cudaSuccess;
}

}  // namespace typeformer

TYPEFORMER_SIMT_C cudaError_t cudaMalloc(void** pointer, std::size_t bytes) {
  const typeformer::simt::Call call("cudaMalloc", typeformer::simt::Effect::allocates);
  if (call.error) return call.error;
  if (const auto error = typeformer::simt::unsafe_call()) return typeformer::simt::status(error);
  return typeformer::simt::allocate_on(typeformer::simt::current_gpu, pointer, bytes);
}
TYPEFORMER_SIMT_C cudaError_t cudaMallocAsync(void** pointer, std::size_t bytes, cudaStream_t stream) {
  const typeformer::simt::Call call("cudaMallocAsync", typeformer::simt::Effect::allocates);
  typeformer::simt::Stream queue;
  if (call.error) return call.error;
  if (const auto error = typeformer::simt::find_queue(stream, queue)) return typeformer::simt::status(error);
  if (queue->capture && bytes) return typeformer::simt::allocate_captured(queue, pointer, bytes);
  return typeformer::simt::allocate_on(queue->gpu, pointer, bytes);
}
TYPEFORMER_SIMT_C cudaError_t cudaFree(void* pointer) {
  const typeformer::simt::Call call("cudaFree", typeformer::simt::Effect::releases);
  auto& device = typeformer::simt::runtime();
  if (const auto error = typeformer::simt::unsafe_call()) return call.end(error);
  cudaError_t result = typeformer::simt::wait_for_all_quietly();
  if (pointer && !device.memory.release(pointer)) result = cudaErrorInvalidValue;
  return call.end(result);
}
TYPEFORMER_SIMT_C cudaError_t cudaFreeAsync(void* pointer, cudaStream_t stream) {
  const typeformer::simt::Call call("cudaFreeAsync", typeformer::simt::Effect::releases);
  auto& device = typeformer::simt::runtime();
  typeformer::simt::Stream queue;
  if (const auto error = typeformer::simt::find_queue(stream, queue)) return call.end(error);
  if (!pointer) return call.end(cudaSuccess);
  if (queue->capture) return call.end(typeformer::simt::free_captured(queue, pointer));
  if (!device.memory.begin_release(pointer)) return call.end(cudaErrorInvalidValue);
  typeformer::simt::enqueue(queue, {typeformer::simt::Work::release,
                                    "cudaFreeAsync",
                                    [&device, pointer] { device.memory.release(pointer); },
                                    {typeformer::simt::Span::write(pointer, device.memory.size_of(pointer))}});
  return call.end(cudaSuccess);
}

// ---------------------------------------------------------------- page-locked host memory

TYPEFORMER_SIMT_C cudaError_t cudaHostAlloc(void** pointer, std::size_t bytes, unsigned flags) {
  const typeformer::simt::Call call("cudaHostAlloc", typeformer::simt::Effect::allocates);
  auto& device = typeformer::simt::runtime();
  constexpr unsigned known = cudaHostAllocPortable | cudaHostAllocMapped | cudaHostAllocWriteCombined;
  if (call.error) return call.error;
  if (const auto error = typeformer::simt::unsafe_call()) return typeformer::simt::status(error);
  if (!pointer || (flags & ~known)) return typeformer::simt::status(cudaErrorInvalidValue);
  *pointer = nullptr;
  if (bytes == 0) return cudaSuccess;
  *pointer = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  if (!*pointer) return typeformer::simt::status(cudaErrorMemoryAllocation);
  std::memset(*pointer, typeformer::simt::poison_byte, bytes);
  device.pinned[static_cast<char*>(*pointer)] = {bytes, typeformer::simt::current_gpu};
  return cudaSuccess;
}
TYPEFORMER_SIMT_C cudaError_t cudaMallocHost(void** pointer, std::size_t bytes) {
  const typeformer::simt::Call call("cudaMallocHost", typeformer::simt::Effect::allocates);
  return call.error ? call.error : cudaHostAlloc(pointer, bytes, cudaHostAllocDefault);
}
/// Waits for all work, which may still use the memory.
TYPEFORMER_SIMT_C cudaError_t cudaFreeHost(void* pointer) {
  const typeformer::simt::Call call("cudaFreeHost", typeformer::simt::Effect::releases);
  auto& device = typeformer::simt::runtime();
  if (const auto error = typeformer::simt::unsafe_call()) return call.end(error);
  if (!pointer) return call.end(cudaSuccess);
  if (!device.pinned.contains(static_cast<char*>(pointer))) return call.end(cudaErrorInvalidValue);
  const cudaError_t result = typeformer::simt::wait_for_all_quietly();
  device.pinned.erase(static_cast<char*>(pointer));
  std::free(pointer);
  return call.end(result);
}
TYPEFORMER_SIMT_C cudaError_t cudaHostGetDevicePointer(void** device_pointer, void* pointer, unsigned flags) {
  const typeformer::simt::Call call("cudaHostGetDevicePointer");
  if (call.error) return call.error;
  if (!device_pointer || flags || !typeformer::simt::runtime().is_pinned(pointer))
    return typeformer::simt::status(cudaErrorInvalidValue);
  *device_pointer = pointer;
  return cudaSuccess;
}

// ---------------------------------------------------------------- questions

TYPEFORMER_SIMT_C cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer) {
  const typeformer::simt::Call call("cudaPointerGetAttributes");
  const auto& device = typeformer::simt::runtime();
  if (call.error) return call.error;
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
  const typeformer::simt::Call call("cudaMemGetInfo");
  const auto& device = typeformer::simt::runtime();
  if (call.error) return call.error;
  if (!free_bytes || !total) return typeformer::simt::status(cudaErrorInvalidValue);
  *total = device.memory_limit;
  *free_bytes = *total - std::min(*total, device.memory.used(typeformer::simt::current_gpu));
  return cudaSuccess;
}

// ---------------------------------------------------------------- copies and fills

TYPEFORMER_SIMT_C cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                                              cudaStream_t stream TYPEFORMER_SIMT_DEFAULT(nullptr)) {
  const typeformer::simt::Call call("cudaMemcpyAsync");
  if (call.error) return call.error;
  return typeformer::simt::copy_on(
      stream, {static_cast<char*>(to), bytes, static_cast<const char*>(from), bytes, bytes}, kind, "cudaMemcpyAsync");
}
TYPEFORMER_SIMT_C cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  const typeformer::simt::Call call("cudaMemcpy");
  if (call.error) return call.error;
  return typeformer::simt::copy_now({static_cast<char*>(to), bytes, static_cast<const char*>(from), bytes, bytes}, kind,
                                    "cudaMemcpy");
}
TYPEFORMER_SIMT_C cudaError_t cudaMemcpy2DAsync(void* to, std::size_t to_pitch, const void* from,
                                                std::size_t from_pitch, std::size_t width, std::size_t height,
                                                cudaMemcpyKind kind,
                                                cudaStream_t stream TYPEFORMER_SIMT_DEFAULT(nullptr)) {
  const typeformer::simt::Call call("cudaMemcpy2DAsync");
  if (call.error) return call.error;
  return typeformer::simt::copy_on(
      stream, {static_cast<char*>(to), to_pitch, static_cast<const char*>(from), from_pitch, width, height}, kind,
      "cudaMemcpy2DAsync");
}
TYPEFORMER_SIMT_C cudaError_t cudaMemcpy2D(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
                                           std::size_t width, std::size_t height, cudaMemcpyKind kind) {
  const typeformer::simt::Call call("cudaMemcpy2D");
  if (call.error) return call.error;
  return typeformer::simt::copy_now(
      {static_cast<char*>(to), to_pitch, static_cast<const char*>(from), from_pitch, width, height}, kind,
      "cudaMemcpy2D");
}
TYPEFORMER_SIMT_C cudaError_t cudaMemsetAsync(void* pointer, int value, std::size_t bytes,
                                              cudaStream_t stream TYPEFORMER_SIMT_DEFAULT(nullptr)) {
  const typeformer::simt::Call call("cudaMemsetAsync");
  if (call.error) return call.error;
  return typeformer::simt::fill_on(stream, pointer, value, bytes, "cudaMemsetAsync");
}
/// The host waits for fills of pinned memory only.
TYPEFORMER_SIMT_C cudaError_t cudaMemset(void* pointer, int value, std::size_t bytes) {
  const typeformer::simt::Call call("cudaMemset");
  typeformer::simt::Stream queue;
  if (call.error) return call.error;
  if (const auto error = typeformer::simt::find_queue(nullptr, queue)) return typeformer::simt::status(error);
  if (const auto error = typeformer::simt::unsafe_call()) return typeformer::simt::status(error);
  if (const auto error = typeformer::simt::fill_on(nullptr, pointer, value, bytes, "cudaMemset")) return error;
  if (typeformer::simt::runtime().memory.contains(pointer)) return cudaSuccess;
  return typeformer::simt::wait_for(typeformer::simt::end_of(queue));
}
