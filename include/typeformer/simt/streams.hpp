/// Streams as queues that run only when something waits for them: a forgotten synchronization is seen as missing data.
#pragma once
#include <chrono>
#include <deque>
#include <functional>
#include <mutex>
#include <set>

#include "typeformer/simt/device_memory.hpp"
#include "typeformer/simt/runtime_types.hpp"

namespace typeformer::inline TYPEFORMER_ABI::simt {

using Task = std::function<void()>;

/// GPUs of the imaginary machine: two, so that work for the wrong one shows.
inline constexpr int gpu_count = 2;
/// The calling thread's current GPU.
inline thread_local int current_gpu = 0;

/// One stream's work.
struct StreamQueue {
  int gpu = current_gpu;  // the one that was current when the stream was made
  std::deque<Task> tasks;
  std::uint64_t pushed = 0, done = 0;
  bool non_blocking = false, running = false;
  std::vector<Task>* capture = nullptr;  // tasks go there instead while a graph is captured
  bool capture_origin = false;
};
using Stream = std::shared_ptr<StreamQueue>;

/// A point in a stream.
struct Mark {
  Stream stream;
  std::uint64_t count = 0;
};

}  // namespace typeformer

struct CUstream_st {
  typeformer::simt::Stream queue;
};
struct CUevent_st {
  typeformer::simt::Mark mark;
  bool timing = true;
  int gpu = typeformer::simt::current_gpu;
  std::vector<typeformer::simt::Task>* capture = nullptr;
  std::shared_ptr<std::chrono::steady_clock::time_point> time;
};
struct CUgraph_st {
  std::vector<typeformer::simt::Task> tasks;
};
struct CUgraphExec_st {
  std::vector<typeformer::simt::Task> tasks;
};

namespace typeformer::inline TYPEFORMER_ABI::simt {

/// The simulated GPUs: their memory, their streams, the last error. All members need the lock.
struct Runtime {
  std::recursive_mutex mutex;
  DeviceMemory memory;
  Stream null_streams[gpu_count];
  std::set<Stream> streams;
  std::map<std::pair<int, const void*>, int>
      dynamic_limit;  // bytes that cudaFuncSetAttribute granted, by GPU and kernel
  std::map<char*, std::size_t> pinned;
  cudaError_t last_error = cudaSuccess;
  std::string last_fault;
  std::uint64_t launches = 0;
  std::uint64_t random_state = 0x9E3779B97F4A7C15ull;

  Runtime() {
    for (int gpu = 0; gpu < gpu_count; ++gpu) {
      null_streams[gpu] = std::make_shared<StreamQueue>();
      null_streams[gpu]->gpu = gpu;
      streams.insert(null_streams[gpu]);
    }
  }
  unsigned draw() {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return static_cast<unsigned>(random_state >> 33);
  }
  bool is_pinned(const void* pointer) const {
    auto after = pinned.upper_bound(static_cast<char*>(const_cast<void*>(pointer)));
    if (after == pinned.begin()) return false;
    --after;
    return static_cast<const char*>(pointer) < after->first + after->second;
  }
};

inline Runtime& runtime() {
  static Runtime& instance = *new Runtime;  // never destroyed: other static objects may free device memory at exit
  return instance;
}

inline Stream queue_of(cudaStream_t stream) { return stream ? stream->queue : runtime().null_streams[current_gpu]; }

/// Remembers a status that is not success for cudaGetLastError.
inline cudaError_t status(cudaError_t value) {
  if (value != cudaSuccess) runtime().last_error = value;
  return value;
}

/// Runs the stream's next task. False when it has none or is in the middle of one.
inline bool step(StreamQueue& queue) {
  if (queue.tasks.empty() || queue.running) return false;
  const Task task = std::move(queue.tasks.front());
  queue.tasks.pop_front();
  queue.running = true;
  task();
  queue.running = false;
  ++queue.done;
  return true;
}

/// Gives up all work, as a device does after a fault.
inline void drop_all(Runtime& device) {
  for (const Stream& queue : device.streams) {
    queue->tasks.clear();
    queue->running = false;
    queue->done = queue->pushed;
  }
}

/// Runs the stream up to `count` tasks; other streams advance too, in random order. Throws Fault.
inline void run_until(const Stream& queue, std::uint64_t count) {
  Runtime& device = runtime();
  while (queue->done < count) {
    if (device.streams.size() > 1 && (device.draw() & 1u)) {
      auto other = device.streams.begin();
      std::advance(other, device.draw() % device.streams.size());
      const Stream chosen = *other;
      if (chosen != queue && step(*chosen)) continue;
    }
    if (!step(*queue)) break;
  }
}

/// Opens device memory for a while.
class DeviceWork {
 public:
  DeviceWork() { runtime().memory.open(); }
  DeviceWork(const DeviceWork&) = delete;
  DeviceWork& operator=(const DeviceWork&) = delete;
  ~DeviceWork() { runtime().memory.close(); }
};

/// Waits for the mark. Throws Fault when a kernel broke a rule; all queued work is then dropped.
inline void wait_for(const Mark& mark) {
  if (!mark.stream) return;
  Runtime& device = runtime();
  try {
    const DeviceWork work;
    run_until(mark.stream, mark.count);
  } catch (const Fault& fault) {
    drop_all(device);
    device.last_fault = fault.what();
    device.last_error = cudaErrorLaunchFailure;
    throw;
  } catch (...) {
    drop_all(device);
    throw;
  }
}

/// Queues a task. A GPU's null stream waits for all its blocking streams and they wait for it, as CUDA's legacy stream
/// does.
inline void push(const Stream& queue, Task task) {
  Runtime& device = runtime();
  if (queue->capture) return queue->capture->push_back(std::move(task));
  std::vector<Mark> before;
  const Stream& null_stream = device.null_streams[queue->gpu];
  if (queue == null_stream) {
    for (const Stream& other : device.streams)
      if (other != queue && other->gpu == queue->gpu && !other->non_blocking && other->done < other->pushed)
        before.push_back({other, other->pushed});
  } else if (!queue->non_blocking && null_stream->done < null_stream->pushed) {
    before.push_back({null_stream, null_stream->pushed});
  }
  if (!before.empty())
    task = [before, task = std::move(task)] {
      for (const Mark& mark : before) run_until(mark.stream, mark.count);
      task();
    };
  queue->tasks.push_back(std::move(task));
  ++queue->pushed;
}

}  // namespace typeformer
