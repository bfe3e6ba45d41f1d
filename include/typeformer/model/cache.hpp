/// Keys and values that outlive a call: what a decoder remembers of each sequence.
#pragma once
#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "typeformer/core/error.hpp"
#include "typeformer/kernel/buffer.hpp"
#include "typeformer/kernel/contract.hpp"
#include "typeformer/model/layers.hpp"

namespace typeformer::inline TYPEFORMER_ABI {

/// Sizes of a state. `capacity` is positions per sequence (0: the model's max_seq). A prompt is read in chunks of at
/// most `chunk` tokens per sequence, which bounds the memory of a pass.
struct StateOptions {
  int sequences = 1;
  int capacity = 0;
  int chunk = 512;
};

/// The keys and values, of type A, of every layer of a stack S for a number of sequences. A layer whose mask looks back
/// a limited number of keys keeps a ring of reach + chunk - 1 positions; the others keep all `capacity`.
template <class S, class Device, class A>
class KVCache {
 public:
  KVCache(Device& on, const StateOptions& options) : on_(&on), options_(options) {
    if (options_.capacity == 0) options_.capacity = S::dims.max_seq;
    check("sequences", options_.sequences);
    check("capacity", options_.capacity);
    check("chunk", options_.chunk);
    options_.chunk = std::min(options_.chunk, options_.capacity);
    lengths_.assign(static_cast<std::size_t>(options_.sequences), 0);
    written_ = lengths_;
    detail::for_each_kind<S>([&]<class L, int>() {
      const int back = reach(L::mask);
      const auto ring = std::int64_t{back} + options_.chunk - 1;
      slots_.push_back(back ? static_cast<int>(std::min<std::int64_t>(options_.capacity, ring)) : options_.capacity);
      reach_.push_back(back);
      widths_.push_back(L::kv_width);
    });
    for (int layer = 0; layer < S::dims.n_layers; ++layer) {
      const auto sequences = static_cast<std::size_t>(options_.sequences), each = elements_of_sequence(layer);
      if (each > std::numeric_limits<std::size_t>::max() / sequences)
        throw Error("State", "sequences, capacity", "a cache whose elements can be counted",
                    std::to_string(sequences) + " sequences of " + std::to_string(each) + " elements in a layer");
      const std::size_t size = sequences * each;
      keys_.emplace_back(on, size);
      values_.emplace_back(on, size);
    }
  }

  Device& device() const { return *on_; }
  int sequences() const { return options_.sequences; }
  int capacity() const { return options_.capacity; }
  int chunk() const { return options_.chunk; }
  /// Positions that a sequence holds.
  int length(int sequence = 0) const { return lengths_[index("length", sequence)]; }
  /// Bytes of keys and values.
  std::size_t bytes() const {
    std::size_t elements = 0;
    for (const auto& buffer : keys_) elements += 2 * buffer.size();
    return elements * sizeof(A);
  }

  /// Forgets everything: as new.
  void reset() {
    for (int s = 0; s < sequences(); ++s) reset(s);
  }
  void reset(int sequence) { lengths_[index("reset", sequence)] = written_[index("reset", sequence)] = 0; }

  /// Forgets the positions from `length` on. Throws Error when a layer's ring has already lost keys that are needed
  /// again.
  void truncate(int sequence, int length) {
    int& held = lengths_[index("truncate", sequence)];
    const int written = written_[index("truncate", sequence)];  // a ring has lost what is older than its newest slots
    if (length < 0 || length > held)
      throw Error("truncate", "length", "0 to " + std::to_string(held), std::to_string(length));
    for (std::size_t kind = 0; kind < slots_.size(); ++kind)
      if (reach_[kind] && length > 0 && std::max(0, length - reach_[kind] + 1) < written - slots_[kind])
        throw Error("truncate", "length",
                    "a length whose window is still held (the last " + std::to_string(slots_[kind]) + " of " +
                        std::to_string(written) + " positions that were read are)",
                    std::to_string(length));
    held = length;
  }

  /// Sequence `to` becomes a copy of `from`: a shared prefix is read once.
  void copy(int from, int to) {
    const auto source = index("copy", from), target = index("copy", to);
    std::vector<A> rows;
    for (int layer = 0; layer < S::dims.n_layers; ++layer) {
      const auto stride = elements_of_sequence(layer);
      rows.resize(stride);
      for (auto* buffers : {&keys_, &values_}) {
        auto& buffer = (*buffers)[static_cast<std::size_t>(layer)];
        buffer.download(std::span<A>(rows), source * stride);
        buffer.upload(std::span<const A>(rows), target * stride);
      }
    }
    lengths_[target] = lengths_[source];
    written_[target] = written_[source];
  }

  // --- for the passes of model/ ---
  int slots(int kind) const { return slots_[static_cast<std::size_t>(kind)]; }
  A* keys(int layer) { return keys_[static_cast<std::size_t>(layer)].data(); }
  A* values(int layer) { return values_[static_cast<std::size_t>(layer)].data(); }
  void advance(int sequence, int tokens) {
    const auto s = static_cast<std::size_t>(sequence);
    lengths_[s] += tokens;
    written_[s] = std::max(written_[s], lengths_[s]);
  }

 private:
  static void check(std::string_view field, int value) {
    if (value < 1) throw Error("State", field, "a positive number", std::to_string(value));
  }
  std::size_t index(std::string_view operation, int sequence) const {
    if (sequence < 0 || sequence >= options_.sequences)
      throw Error(operation, "sequence", "0 to " + std::to_string(options_.sequences - 1), std::to_string(sequence));
    return static_cast<std::size_t>(sequence);
  }
  Device* on_;
  std::size_t elements_of_sequence(int layer) const {
    const auto kind = static_cast<std::size_t>(S::layer_kind(layer));
    return static_cast<std::size_t>(slots_[kind]) * static_cast<std::size_t>(widths_[kind]);
  }
  StateOptions options_;
  std::vector<int> lengths_, written_;       // by sequence; written: the most positions since the last reset
  std::vector<int> slots_, reach_, widths_;  // by kind of layer; widths: kv_heads * head_dim
  std::vector<Buffer<Device, A>> keys_, values_;
};

}  // namespace typeformer
