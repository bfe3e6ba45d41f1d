/// Vector clocks: which operations are ordered before which, whatever order they happen to run in.
#pragma once
#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "typeformer/core/annotate.hpp"

namespace typeformer::inline TYPEFORMER_ABI::simt {

/// How many operations of each sequence (a stream, or a branch of a graph) something is ordered behind.
class Clock {
 public:
  std::uint64_t at(unsigned sequence) const { return sequence < counts_.size() ? counts_[sequence] : 0; }
  void set(unsigned sequence, std::uint64_t count) {
    if (sequence >= counts_.size()) counts_.resize(sequence + 1, 0);
    counts_[sequence] = count;
  }
  /// Is behind what `other` is behind, too.
  void join(const Clock& other) {
    if (counts_.size() < other.counts_.size()) counts_.resize(other.counts_.size(), 0);
    for (std::size_t i = 0; i < other.counts_.size(); ++i) counts_[i] = std::max(counts_[i], other.counts_[i]);
  }

 private:
  std::vector<std::uint64_t> counts_;
};

/// The time of an operation: the count-th of its sequence, and all that is ordered before it.
struct Stamp {
  Clock clock;
  unsigned sequence = 0;
  std::uint64_t count = 0;

  /// Whether this is ordered before something at the clock; an operation counts as before itself.
  bool before(const Clock& later) const { return later.at(sequence) >= count; }
};

/// Numbers of sequences and how far they have come. A number that is given back goes to a later sequence, which counts
/// on: to the clocks it is the continuation of the former.
class Sequences {
 public:
  unsigned take() {
    if (free_.empty()) {
      counts_.push_back(0);
      return static_cast<unsigned>(counts_.size() - 1);
    }
    const unsigned result = free_.back();
    free_.pop_back();
    return result;
  }
  void give_back(unsigned sequence) { free_.push_back(sequence); }
  /// The sequence's next operation, behind all that `clock` is behind.
  Stamp next(unsigned sequence, Clock clock) {
    clock.set(sequence, ++counts_[sequence]);
    return {std::move(clock), sequence, counts_[sequence]};
  }

 private:
  std::vector<std::uint64_t> counts_;
  std::vector<unsigned> free_;
};

}  // namespace typeformer
