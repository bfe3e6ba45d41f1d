/// The race checker's memory of operations: which of those that ran are not ordered against the one that runs now.
/// Order is what the program has established by events, waits and the rules of the null stream; that operations
/// happened to run one after the other does not count.
#pragma once
#include "typeformer/simt/streams.hpp"

namespace typeformer::inline TYPEFORMER_ABI::simt {

/// An operation that ran.
struct PastOperation {
  std::uint64_t first = 0, blocks = 0;  // a kernel's blocks have the numbers [first, first + blocks)
  Stamp stamp;
  std::vector<Span> spans;  // of all others: the memory that they used
  Operation what;           // name, kernel and place only

  bool has_block(std::uint64_t number) const { return number >= first && number < first + blocks; }
};

class StreamOrder {
 public:
  using Past = std::shared_ptr<PastOperation>;

  /// An operation begins: afterwards, concurrent() are those that it is not ordered behind.
  void begin(const Operation& operation, const Stamp& stamp, std::uint64_t first, std::uint64_t blocks) {
    concurrent_.clear();
    for (const Past& past : past_)
      if (!past->stamp.before(stamp.clock)) concurrent_.push_back(past);
    PastOperation now{first, blocks, stamp, {}, {operation.work, operation.name}};
    now.what.kernel = operation.kernel;
    now.what.place = operation.place;
    if (blocks == 0)
      for (const Span& span : operation.spans)
        if (span.use != Span::Use::argument) now.spans.push_back(span);
    past_.push_back(std::make_shared<PastOperation>(std::move(now)));
  }
  const std::vector<Past>& concurrent() const { return concurrent_; }

  /// The kernel whose block has the number, if it is not ordered before the present operation.
  const PastOperation* concurrent_kernel(std::uint64_t block) const {
    for (const Past& past : concurrent_)
      if (past->has_block(block)) return past.get();
    return nullptr;
  }

  /// Forgets what is ordered before all operations to come: those that will be queued, and those that are.
  void forget(const Stamp& now) {
    const Runtime& device = runtime();
    std::size_t running = 0;
    for (const Stream& queue : device.streams) running += queue->running;
    if (running > 1) return;  // some wait for others in the middle of an operation
    std::erase_if(past_, [&](const Past& past) {
      if (!past->stamp.before(device.host_clock) || !past->stamp.before(now.clock)) return false;
      for (const Stream& queue : device.streams)
        if (!queue->tasks.empty() && !past->stamp.before(queue->tasks.front().stamp.clock)) return false;
      return true;
    });
  }
  /// Memory goes back: what comes there next has nothing to do with what was.
  void release(const void* first, std::size_t bytes) {
    for (const Past& past : past_)
      std::erase_if(past->spans,
                    [&](const Span& span) { return span.touches(static_cast<const char*>(first), bytes); });
  }

 private:
  std::vector<Past> past_, concurrent_;
};

}  // namespace typeformer
