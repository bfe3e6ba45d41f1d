/// Streams as queues that run only when something waits for them: a forgotten synchronization is seen as missing data.
#pragma once
#include <exception>

#include "typeformer/simt/operations.hpp"

namespace typeformer::inline TYPEFORMER_ABI::simt {

/// A failure that a test asks for; see injection.hpp.
struct Failure {
  std::string only;          // the beginning of the functions' names; empty: all functions
  bool allocations = false;  // only functions that allocate memory
  std::uint64_t countdown = 1;
  cudaError_t code = cudaErrorUnknown;
  int blas_status = 0;
  std::string failed;  // the function, once it has
  bool made_sticky = false;
};

/// What happened since the program began.
struct Totals {
  std::map<std::string_view, std::uint64_t> calls;  // of the runtime and cuBLASLt, by name
  std::map<const void*, std::uint64_t> launches;    // queued or replayed, by kernel
  std::uint64_t copies = 0, fills = 0, products = 0, replays = 0, copied_bytes = 0;
};

enum class BlasKind : std::uint8_t { handle, description, layout, preference };

/// Objects that have been created and not destroyed, by the pointers that callers have.
struct Handles {
  std::set<const void*> streams, events, graphs, executables;
  std::map<BlasKind, std::set<const void*>> blas;
};

/// Page-locked memory.
struct Pinned {
  std::size_t bytes = 0;
  int gpu = 0;
};

/// The operation that runs now, and when that is.
struct Performed {
  const Operation* operation = nullptr;
  const Stamp* stamp = nullptr;
};

/// The simulated GPUs: their memory, their streams, the last error. All members need the lock.
struct Runtime {
  std::recursive_mutex mutex;
  DeviceMemory memory;
  Stream null_streams[gpu_count];
  std::set<Stream> streams;
  std::map<std::pair<int, const void*>, int>
      dynamic_limit;  // bytes that cudaFuncSetAttribute granted, by GPU and kernel
  std::map<char*, Pinned> pinned;
  std::size_t memory_limit = DeviceMemory::capacity;  // bytes that a GPU seems to have
  std::vector<std::shared_ptr<Capture>> captures;     // that have not ended
  unsigned long long captures_begun = 0;
  Handles handles;
  cudaError_t last_error = cudaSuccess;
  cudaError_t sticky = cudaSuccess;  // what every call fails with, once set
  bool sticky_faults = false;        // faults are statuses, not exceptions
  std::string last_fault;
  std::uint64_t launches = 0;  // of kernels that ran
  Sequences sequences;
  Clock host_clock;  // what all calls to come are ordered behind, in every thread
  Performed performed;
  Totals totals;
  std::vector<Failure*> failures;
  unsigned call_depth = 0;
  std::uint64_t random_state = 0x9E3779B97F4A7C15ull;

  Runtime() {
    for (int gpu = 0; gpu < gpu_count; ++gpu) {
      null_streams[gpu] = std::make_shared<StreamQueue>();
      null_streams[gpu]->gpu = gpu;
      null_streams[gpu]->sequence = sequences.take();
      streams.insert(null_streams[gpu]);
    }
  }
  unsigned draw() {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return static_cast<unsigned>(random_state >> 33);
  }
  bool is_pinned(const void* pointer, std::size_t bytes = 1) const {
    auto after = pinned.upper_bound(static_cast<char*>(const_cast<void*>(pointer)));
    if (after == pinned.begin()) return false;
    --after;
    return static_cast<const char*>(pointer) + bytes <= after->first + after->second.bytes;
  }
};

inline Runtime& runtime() {
  static Runtime& instance = *new Runtime;  // never destroyed: other static objects may free device memory at exit
  return instance;
}

/// The work of a stream, or of the current GPU's null stream. Null for what is no stream.
inline Stream queue_of(cudaStream_t stream) {
  Runtime& device = runtime();
  if (!stream || stream == cudaStreamLegacy) return device.null_streams[current_gpu];
  return device.handles.streams.contains(stream) ? stream->queue : nullptr;
}

/// Remembers a status that is not success for cudaGetLastError.
inline cudaError_t status(cudaError_t value) {
  if (value != cudaSuccess) runtime().last_error = value;
  return value;
}

/// Gives up all work, as a device does after a fault.
inline void drop_all(Runtime& device) {
  for (const Stream& queue : device.streams) {
    queue->tasks.clear();
    queue->running = false;
    queue->done = queue->pushed;
    device.host_clock.join(queue->clock);
  }
  std::erase_if(device.streams, [](const Stream& queue) { return queue->destroyed; });
}

/// Remembers which allocations an operation means, in case others take their place.
inline void note_allocations(Operation& operation) {
  for (Span& span : operation.spans) span.serial = runtime().memory.serial_of(span.first);
}

/// Runs an operation. Throws Fault when memory that it was given has been freed since, or when the race checker finds
/// that it is not ordered behind another stream's use of its memory.
inline void perform(const Operation& operation, const Stamp& stamp) {
  Runtime& device = runtime();
  for (const Span& span : operation.spans)
    if (span.serial && device.memory.serial_of(span.first) != span.serial)
      throw Fault(operation.name, operation.work == Work::kernel ? operation.text() : "memory",
                  "memory that lives until the operation has run",
                  message("%p, freed before", static_cast<const void*>(span.first)).text);
  const Performed outer = std::exchange(device.performed, {&operation, &stamp});
  std::string where, what;
  checker_operation(operation, stamp, !outer.operation);
  if (checker_new_finding(where, what))
    throw Fault("stream order", where, "operations ordered by events or waits", what);
  operation.run();
  device.performed = outer;
}

/// Forgets a stream that the program has destroyed once its work is done.
inline void forget_when_done(const Stream& queue) {
  if (queue->destroyed && queue->done == queue->pushed && runtime().streams.erase(queue))
    runtime().sequences.give_back(queue->sequence);
}

inline void run_until(const Stream& queue, std::uint64_t count);

/// Runs the stream's next operation. False when it has none or is in the middle of one.
inline bool step(StreamQueue& queue) {
  if (queue.tasks.empty() || queue.running) return false;
  const Operation operation = std::move(queue.tasks.front());
  queue.tasks.pop_front();
  queue.running = true;
  for (const Mark& mark : operation.before) run_until(mark.stream, mark.count);
  perform(operation, operation.stamp);
  queue.running = false;
  ++queue.done;
  return true;
}

/// Runs the stream up to `count` operations; other streams advance too, in random order. Throws Fault.
inline void run_until(const Stream& queue, std::uint64_t count) {
  Runtime& device = runtime();
  while (queue->done < count) {
    if (device.streams.size() > 1 && (device.draw() & 1u)) {
      auto other = device.streams.begin();
      std::advance(other, device.draw() % device.streams.size());
      const Stream chosen = *other;
      if (chosen != queue && step(*chosen)) {
        forget_when_done(chosen);
        continue;
      }
    }
    if (!step(*queue)) break;
  }
  forget_when_done(queue);
}

/// Opens device memory for a while.
class DeviceWork {
 public:
  DeviceWork() { runtime().memory.open(); }
  DeviceWork(const DeviceWork&) = delete;
  DeviceWork& operator=(const DeviceWork&) = delete;
  ~DeviceWork() { runtime().memory.close(); }
};

/// What a GPU's runtime calls a Fault.
inline cudaError_t code_of(const Fault& fault) {
  const std::string_view text = fault.what();
  for (const char* sign : {"misaligned", "aligned address", "16-byte aligned"})
    if (text.find(sign) != text.npos) return cudaErrorMisalignedAddress;
  for (const char* sign : {"out-of-bounds", "live allocation", "outside every allocation", "inside device allocations"})
    if (text.find(sign) != text.npos) return cudaErrorIllegalAddress;
  return cudaErrorLaunchFailure;
}

/// The end of a GPU's work by a fault: all that is queued is dropped. Throws the fault on, or makes it sticky and
/// returns what it is called.
inline cudaError_t break_gpu(const Fault& fault) {
  Runtime& device = runtime();
  drop_all(device);
  device.performed = {};
  device.last_fault = fault.what();
  device.last_error = cudaErrorLaunchFailure;
  if (!device.sticky_faults) throw Fault(fault);
  return device.last_error = device.sticky = code_of(fault);
}

/// Waits for the mark. Throws Fault when a kernel broke a rule, or returns its status when faults are sticky; all
/// queued work is then dropped.
inline cudaError_t wait_for(const Mark& mark) {
  Runtime& device = runtime();
  if (!mark.stream) return cudaSuccess;
  if (mark.clock) device.host_clock.join(*mark.clock);
  if (mark.stream->done >= mark.count) return cudaSuccess;
  try {
    const DeviceWork work;
    run_until(mark.stream, mark.count);
  } catch (const Fault& fault) {
    return break_gpu(fault);
  } catch (...) {
    drop_all(device);
    throw;
  }
  return cudaSuccess;
}

/// Waits without throwing: for functions that destructors call.
inline cudaError_t wait_quietly(const Mark& mark) noexcept {
  try {
    return wait_for(mark);
  } catch (const std::exception&) {
    return status(cudaErrorLaunchFailure);
  }
}

inline Mark end_of(const Stream& queue) { return {queue, queue->pushed, std::make_shared<const Clock>(queue->clock)}; }

/// Waits without throwing for all streams of all GPUs.
inline cudaError_t wait_for_all_quietly() noexcept {
  cudaError_t result = cudaSuccess;
  for (const Stream& queue : std::set(runtime().streams))
    if (const auto error = wait_quietly(end_of(queue))) result = error;
  return result;
}

/// Adds an operation that is queued, or replayed by a graph, to the totals.
inline void count(const Operation& operation) {
  Totals& totals = runtime().totals;
  switch (operation.work) {
    case Work::kernel:
      ++totals.launches[operation.kernel];
      break;
    case Work::copy:
      ++totals.copies;
      totals.copied_bytes += operation.bytes;
      break;
    case Work::fill:
      ++totals.fills;
      break;
    case Work::product:
      ++totals.products;
      break;
    default:
      break;
  }
}

/// A GPU's null stream waits for all its blocking streams and they wait for it, as CUDA's legacy stream does.
inline void order_by_null_stream(const Stream& queue, Operation& operation) {
  const Stream& null_stream = runtime().null_streams[queue->gpu];
  const auto follow = [&](const Stream& other) {
    queue->clock.join(other->clock);
    if (other->done < other->pushed) operation.before.push_back({other, other->pushed});
  };
  if (queue == null_stream) {
    for (const Stream& other : runtime().streams)
      if (other != queue && other->gpu == queue->gpu && !other->non_blocking) follow(other);
  } else if (!queue->non_blocking) {
    follow(null_stream);
  }
}

/// Queues an operation behind what the stream is behind and what `operation.before` names.
inline void enqueue(const Stream& queue, Operation operation) {
  Runtime& device = runtime();
  count(operation);
  note_allocations(operation);
  queue->clock.join(device.host_clock);
  for (const Mark& mark : operation.before)
    if (mark.clock) queue->clock.join(*mark.clock);
  order_by_null_stream(queue, operation);
  operation.stamp = device.sequences.next(queue->sequence, queue->clock);
  queue->clock = operation.stamp.clock;
  queue->tasks.push_back(std::move(operation));
  ++queue->pushed;
}

/// Appends an operation to a sequence that is being captured, behind what its stream stands behind.
inline void capture_node(StreamQueue& queue, Operation operation) {
  note_allocations(operation);
  Capture& capture = *queue.capture;
  capture.nodes.push_back(std::make_shared<CUgraphNode_st>(CUgraphNode_st{
      std::move(operation), std::exchange(queue.frontier, {capture.nodes.size()}), queue.lane, queue.gpu}));
}

/// Queues an operation, or adds it to the graph that the stream is captured into.
inline void push(const Stream& queue, Operation operation) {
  if (queue->capture)
    capture_node(*queue, std::move(operation));
  else
    enqueue(queue, std::move(operation));
}

}  // namespace typeformer
