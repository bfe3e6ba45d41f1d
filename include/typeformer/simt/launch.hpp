/// Launching kernels on the host.
#pragma once
#include <span>
#include <tuple>

#include "typeformer/simt/grid.hpp"
#include "typeformer/simt/runtime.hpp"

namespace typeformer::inline TYPEFORMER_ABI::simt {

/// Where and how a kernel runs: `launch(kernel, {grid, block, dynamic_shared_bytes, stream}, arguments...)`.
struct LaunchShape {
  dim3 grid, block;
  std::size_t shared_bytes;
  cudaStream_t stream;
  Place place;

  LaunchShape(dim3 grid_size, dim3 block_size, std::size_t dynamic_bytes = 0, cudaStream_t on = nullptr,
              Place from = Place::here())
      : grid(grid_size), block(block_size), shared_bytes(dynamic_bytes), stream(on), place(from) {}
};

/// What cudaLaunchKernel would say about the shape.
inline cudaError_t check_shape(const void* kernel, const LaunchShape& shape) {
  const dim3 grid = shape.grid, block = shape.block;
  const std::uint64_t threads = std::uint64_t{block.x} * block.y * block.z;
  if (threads == 0 || block.x > 1024 || block.y > 1024 || block.z > 64 || threads > Block::max_threads)
    return cudaErrorInvalidConfiguration;
  if (grid.x == 0 || grid.y == 0 || grid.z == 0 || grid.x > 0x7fffffffu || grid.y > 65535 || grid.z > 65535)
    return cudaErrorInvalidConfiguration;
  return shape.shared_bytes > dynamic_limit_of(kernel) ? cudaErrorInvalidValue : cudaSuccess;
}

/// A pointer argument must be null or point into memory of the current GPU or pinned memory.
template <class T>
void check_argument([[maybe_unused]] const T& argument, [[maybe_unused]] Place place) {
  if constexpr (std::is_pointer_v<T>) {
    const void* pointer = argument;
    const Runtime& device = runtime();
    if (!pointer || options().host_pointers || device.is_pinned(pointer)) return;
    if (device.memory.valid(pointer, 0)) {
      if (device.memory.gpu_of(pointer) == current_gpu) return;
      throw Fault("launch", message("%s:%d", place.name(), place.line).text,
                  message("pointers to memory of GPU %d", current_gpu).text,
                  message("%p of GPU %d", pointer, device.memory.gpu_of(pointer)).text);
    }
    throw Fault(
        "launch", message("%s:%d", place.name(), place.line).text, "pointers to device memory",
        message(device.memory.contains(pointer) ? "%p outside every live allocation" : "host memory at %p", pointer)
            .text);
  }
}

template <class T>
void note_argument([[maybe_unused]] const T& argument, [[maybe_unused]] Operation& operation) {
  if constexpr (std::is_pointer_v<T>)
    if (argument) operation.spans.push_back(Span::argument(argument));
}

/// The kernel that a fault happened in, to be added to what is told of it.
inline std::string in_kernel(Place place) {
  const Operation* operation = runtime().performed.operation;
  return "; in " +
         (operation ? operation->text() : std::string(message("a kernel at %s:%d", place.name(), place.line).text));
}

/// Runs a queued kernel and looks at the allocations' zones afterwards.
inline void run_kernel(const LaunchShape& shape, void (*body)(void*), void* context) {
  ++runtime().launches;
  std::size_t bytes = 0, offset = 0;
  try {
    run_grid(shape.grid, shape.block, shape.shared_bytes, body, context, shape.place);
  } catch (const Fault& fault) {
    while (runtime().memory.find_overrun(bytes, offset)) continue;  // repairs what the kernel left behind
    throw Fault(fault.operation(), fault.argument(), fault.expected(), fault.got() + in_kernel(shape.place));
  }
  if (runtime().memory.find_overrun(bytes, offset))
    throw Fault(
        "kernel", message("launched at %s:%d", shape.place.name(), shape.place.line).text,
        "stores inside device allocations",
        message("a store at byte %zu of an allocation of %zu bytes", offset, bytes).text + in_kernel(shape.place));
}

/// A launch whose turn has come. `arguments` are the bytes of the kernel's parameters; run_kernel(shape, body, context)
/// runs it on the host layer.
struct KernelCall {
  const void* kernel;
  const LaunchShape& shape;
  std::span<const std::span<const std::byte>> arguments;
  void (*body)(void*);
  void* context;
};
/// Runs kernels in place of the host layer, unless it is null. For tests that compare other ways to run them.
inline void (*run_instead)(const KernelCall&) = nullptr;

/// Queues kernel(arguments...) for every thread of the grid. Returns the status of the launch; what the kernel does
/// wrong is a Fault of the call that waits for it. Throws Fault for a pointer argument to host memory.
template <class... Parameters, class... Arguments>
[[nodiscard]] cudaError_t launch(void (*kernel)(Parameters...), const LaunchShape& shape, Arguments&&... arguments) {
  static_assert(sizeof...(Parameters) == sizeof...(Arguments), "A launch passes one argument per kernel parameter.");
  const Call begun("cudaLaunchKernel");
  const void* const address = reinterpret_cast<const void*>(kernel);
  Stream queue;
  if (begun.error) return begun.error;
  if (const cudaError_t error = find_queue(shape.stream, queue)) return status(error);
  if (queue->gpu != current_gpu) return status(cudaErrorInvalidResourceHandle);
  if (const cudaError_t error = check_shape(address, shape)) return status(error);
  using Values = std::tuple<std::remove_cv_t<Parameters>...>;
  struct Launch {
    void (*kernel)(Parameters...);
    Values values;
  };
  auto call =
      std::make_shared<Launch>(Launch{kernel, Values(static_cast<Parameters>(std::forward<Arguments>(arguments))...)});
  Operation operation{Work::kernel, "cudaLaunchKernel"};
  operation.kernel = address;
  operation.place = shape.place;
  const cudaError_t error = check_arguments(
      [&] { std::apply([&](const auto&... value) { (check_argument(value, shape.place), ...); }, call->values); });
  if (error) return error;
  std::apply([&](const auto&... value) { (note_argument(value, operation), ...); }, call->values);
  operation.run = [call, shape] {
    const auto body = [](void* context) {
      const Launch& self = *static_cast<Launch*>(context);
      std::apply(self.kernel, self.values);
    };
    if (!run_instead) return run_kernel(shape, body, call.get());
    std::apply(
        [&](const auto&... value) {
          const std::span<const std::byte> bytes[] = {std::as_bytes(std::span(&value, 1))..., {}};
          run_instead(
              {reinterpret_cast<const void*>(call->kernel), shape, {bytes, sizeof...(value)}, body, call.get()});
        },
        call->values);
  };
  push(queue, std::move(operation));
  return cudaSuccess;
}

/// Allows a kernel more than 48 KiB of dynamic shared memory. Returns the status of cudaFuncSetAttribute.
template <class... Parameters>
[[nodiscard]] cudaError_t allow_shared(void (*kernel)(Parameters...), std::size_t bytes) {
  return cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel), cudaFuncAttributeMaxDynamicSharedMemorySize,
                              static_cast<int>(bytes));
}

/// Kernels run since the program began.
inline std::uint64_t launch_count() { return runtime().launches; }

}  // namespace typeformer
