/// What streams, events and graphs consist of.
#pragma once
#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <thread>

#include "typeformer/simt/clock.hpp"
#include "typeformer/simt/device_memory.hpp"
#include "typeformer/simt/kernel_name.hpp"
#include "typeformer/simt/runtime_types.hpp"

namespace typeformer::inline TYPEFORMER_ABI::simt {

/// GPUs of the imaginary machine: two, so that work for the wrong one shows.
inline constexpr int gpu_count = 2;
/// The calling thread's current GPU.
inline thread_local int current_gpu = 0;

enum class Work : std::uint8_t { kernel, copy, fill, product, record, wait, allocation, release, graph };

/// Memory that an operation is known to use before it runs: rows of bytes. Of a kernel's pointers only the address is
/// known.
struct Span {
  enum class Use : std::uint8_t { read, write, argument };
  const char* first = nullptr;
  std::size_t bytes = 0;  // of a row
  Use use = Use::argument;
  std::size_t rows = 1, pitch = 0;
  std::uint64_t serial = 0;  // of the allocation that it lay in when it was queued

  static Span argument(const void* pointer) { return {static_cast<const char*>(pointer), 0, Use::argument}; }
  static Span read(const void* pointer, std::size_t bytes, std::size_t rows = 1, std::size_t pitch = 0) {
    return {static_cast<const char*>(pointer), bytes, Use::read, rows, pitch};
  }
  static Span write(const void* pointer, std::size_t bytes, std::size_t rows = 1, std::size_t pitch = 0) {
    return {static_cast<const char*>(pointer), bytes, Use::write, rows, pitch};
  }
  const char* row(std::size_t index) const { return first + index * pitch; }
  /// Whether a row has one of the bytes [begin, begin + count).
  bool touches(const char* begin, std::size_t count) const {
    if (bytes == 0 || count == 0 || begin + count <= first || begin >= row(rows - 1) + bytes) return false;
    if (rows == 1) return true;
    const std::size_t from = begin < first ? 0 : static_cast<std::size_t>(begin - first) / pitch;
    for (std::size_t i = from; i < rows && row(i) < begin + count; ++i)
      if (row(i) + bytes > begin) return true;
    return false;
  }
  bool touches(const Span& other) const {
    if (rows > other.rows) return other.touches(*this);
    for (std::size_t i = 0; i < rows; ++i)
      if (other.touches(row(i), bytes)) return true;
    return false;
  }
};

struct StreamQueue;
using Stream = std::shared_ptr<StreamQueue>;

/// A point in a stream, and what is ordered before it.
struct Mark {
  Stream stream;
  std::uint64_t count = 0;
  std::shared_ptr<const Clock> clock = nullptr;
};

/// A piece of work, queued by one call.
struct Operation {
  Work work = Work::record;
  const char* name = "";  // of the function that was called
  std::function<void()> run = {};
  std::vector<Span> spans = {};
  std::uint64_t bytes = 0;  // that a copy or fill moves
  const void* kernel = nullptr;
  Place place{};
  std::vector<Mark> before = {};  // points of other streams that it waits for
  Stamp stamp = {};

  std::string text() const {
    if (work != Work::kernel) return name;
    return kernel_name(kernel) + message(", launched at %s:%d", place.name(), place.line).text;
  }
};

struct Capture;

/// One stream's work.
struct StreamQueue {
  int gpu = current_gpu;  // the one that was current when the stream was made
  std::deque<Operation> tasks;
  std::uint64_t pushed = 0, done = 0;
  bool non_blocking = false, running = false, destroyed = false;
  std::shared_ptr<Capture> capture;   // operations go there instead while a graph is captured
  std::vector<std::size_t> frontier;  // the captured nodes that the next one depends on
  unsigned lane = 0;                  // which of the capture's streams this is
  unsigned sequence = 0;
  Clock clock;  // what the next operation is ordered behind
};

}  // namespace typeformer

/// A captured operation; `after` are the positions of the nodes that it depends on, all of them before its own.
struct CUgraphNode_st {
  typeformer::simt::Operation operation;
  std::vector<std::size_t> after;
  unsigned lane = 0;
  int gpu = 0;
};

namespace typeformer::inline TYPEFORMER_ABI::simt {

using Nodes = std::vector<std::shared_ptr<CUgraphNode_st>>;

/// A sequence that is being captured.
struct Capture {
  Nodes nodes;
  cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
  std::thread::id thread = std::this_thread::get_id();
  Stream origin;
  std::vector<Stream> streams;  // all that take part
  bool invalid = false, ended = false;
  unsigned long long id = 0;
  std::map<const void*, std::shared_ptr<void>> memory;  // that it allocates

  bool local() const { return thread == std::this_thread::get_id(); }
};

}  // namespace typeformer

struct CUstream_st {
  typeformer::simt::Stream queue;
};
struct CUevent_st {
  typeformer::simt::Mark mark;
  bool timing = true;
  int gpu = typeformer::simt::current_gpu;
  std::shared_ptr<std::chrono::steady_clock::time_point> time;
  std::shared_ptr<typeformer::simt::Capture> capture;  // in which it was last recorded, if in any
  std::vector<std::size_t> frontier;                   // the nodes that it stands behind there
};
struct CUgraph_st {
  typeformer::simt::Nodes nodes;
};
struct CUgraphExec_st {
  typeformer::simt::Nodes nodes;
  typeformer::simt::Mark last_launch;
  std::vector<unsigned> sequences;  // one for each captured stream
};
