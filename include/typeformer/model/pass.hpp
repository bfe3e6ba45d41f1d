/// The tokens of one pass in the device's memory, and where each kind of layer finds their keys.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "typeformer/kernel/recording.hpp"
#include "typeformer/model/batch.hpp"
#include "typeformer/model/block.hpp"
#include "typeformer/model/cache.hpp"

namespace typeformer::inline TYPEFORMER_ABI::detail {

/// Lists that go to the device's memory in one copy; reused from pass to pass.
template <class Device>
class PackedLists {
 public:
  void clear() { bytes_.clear(); }
  /// Appends a list; at() finds it by what this returns.
  template <class T>
  std::size_t add(const std::vector<T>& list) {
    const std::size_t begin = (bytes_.size() + 15) / 16 * 16, bytes = list.size() * sizeof(T);
    bytes_.resize(begin + bytes);
    if (bytes) std::memcpy(bytes_.data() + begin, list.data(), bytes);
    return begin;
  }
  void upload(Device& on) {
    if (on_device_.size() < bytes_.size())
      on_device_ = Buffer<Device, std::byte>(on, bytes_.size() + bytes_.size() / 2);
    on_device_.upload(bytes_);
  }
  template <class T>
  const T* at(std::size_t begin) const {
    return reinterpret_cast<const T*>(on_device_.data() + begin);
  }

 private:
  std::vector<std::byte> bytes_;
  Buffer<Device, std::byte> on_device_;
};

/// Where the queries of each target sequence find the keys of its source.
inline std::vector<Segment> cross_segments(std::span<const Segment> targets, std::span<const int> target_lengths,
                                           std::span<const int> source_lengths) {
  std::vector<Segment> segments;
  std::int64_t key_row = 0;
  std::size_t next = 0;
  for (std::size_t s = 0; s < source_lengths.size(); key_row += source_lengths[s], ++s) {
    const Segment target = target_lengths[s] > 0 ? targets[next++] : Segment{};  // without queries: keys to be zeroed
    segments.push_back({.query_row = target.query_row,
                        .key_row = key_row,
                        .queries = target.queries,
                        .keys = source_lengths[s],
                        .first_position = target.first_position});
  }
  return segments;
}

/// Ids, positions and segments of the tokens of a pass with activations of type A; reused from pass to pass.
template <class Device, class A>
class PassArrays {
 public:
  /// Tokens of sequences that start at position 0 and keep their keys beside their queries. `source_lengths`: of the
  /// encoded source that each sequence reads, if any.
  void set(Device& on, const Batch& batch, int kinds, std::span<const int> source_lengths = {}) {
    begin();
    ids_.assign(batch.ids.begin(), batch.ids.end());
    Segment segment;
    for (std::size_t s = 0; s < batch.lengths.size(); ++s) {
      const int length = batch.lengths[s];
      segment.queries = segment.keys = length;
      segment.mask = batch.mask_data.empty() ? MaskData{} : batch.mask_data[s];
      for (int position = 0; position < length; ++position) positions_.push_back(position);
      if (length > 0) segments_[0].push_back(segment);
      segment.query_row += length;
      segment.key_row += length;
    }
    segments_.resize(static_cast<std::size_t>(kinds), segments_[0]);
    cross_ = cross_segments(segments_[0], batch.lengths, source_lengths);
    upload(on);
  }

  /// Tokens first[s] .. first[s] + count[s] - 1 of each sequence of the batch, appended to what the cache holds.
  /// `rules`: how each sequence's next token is sampled, or none.
  template <class S>
  void set(Device& on, const Batch& batch, std::span<const int> first, std::span<const int> count,
           const KVCache<S, Device, A>& cache, std::span<const SampleRule> rules,
           std::span<const int> source_lengths = {}) {
    begin();
    segments_.resize(S::layer_kinds);
    kv_rows_.resize(S::layer_kinds);
    std::size_t begins = 0;
    for (int s = 0; s < cache.sequences();
         begins += static_cast<std::size_t>(batch.lengths[static_cast<std::size_t>(s)]), ++s) {
      const auto index = static_cast<std::size_t>(s);
      if (count[index] == 0) continue;
      append(s, count[index], batch.mask_data.empty() ? MaskData{} : batch.mask_data[index], cache);
      const auto from = batch.ids.begin() + static_cast<std::ptrdiff_t>(begins) + first[index];
      ids_.insert(ids_.end(), from, from + count[index]);
      if (first[index] + count[index] == batch.lengths[index]) {
        finished_.push_back(s);
        last_rows_.push_back(static_cast<std::int32_t>(ids_.size()) - 1);
        if (!rules.empty()) rules_.push_back(rules[index]);
      }
    }
    cross_ = cross_segments(segments_[0], count, source_lengths);
    upload(on);
  }

  const std::int32_t* ids() const { return lists_.template at<std::int32_t>(ids_at_); }
  const std::int32_t* positions() const { return lists_.template at<std::int32_t>(positions_at_); }
  std::int64_t tokens() const { return static_cast<std::int64_t>(ids_.size()); }
  /// Segments of cross-attention, one for each sequence, in host memory.
  std::span<const Segment> cross() const { return cross_; }
  /// The sequences of the cache whose last token is in this pass, and the rows of these tokens.
  std::span<const int> finished() const { return finished_; }
  const std::int32_t* last_rows() const { return lists_.template at<std::int32_t>(last_rows_at_); }
  /// How the tokens after these are sampled; null: they are not.
  const SampleRule* rules() const { return rules_.empty() ? nullptr : lists_.template at<SampleRule>(rules_at_); }

  /// The pass as layers of a kind see it, without an encoder's output.
  PassTokens<A> of_kind(int kind) const {
    const auto index = static_cast<std::size_t>(kind);
    return {.tokens = tokens(),
            .positions = positions(),
            .kv_rows = kv_rows_.empty() ? nullptr : lists_.template at<std::int64_t>(kv_rows_at_[index]),
            .segments = {segments_[index], lists_.template at<Segment>(segments_at_[index])},
            .cross_segments = {cross_, lists_.template at<Segment>(cross_at_)}};
  }

 private:
  void begin() {
    for (auto* list : {&ids_, &positions_, &last_rows_}) list->clear();
    finished_.clear();
    rules_.clear();
    kv_rows_.clear();
    segments_.assign(1, {});
  }
  template <class S>
  void append(int sequence, int count, const MaskData& mask, const KVCache<S, Device, A>& cache) {
    const int held = cache.length(sequence);
    const auto query_row = static_cast<std::int64_t>(positions_.size());
    for (int i = 0; i < count; ++i) positions_.push_back(held + i);
    for (int kind = 0; kind < S::layer_kinds; ++kind) {
      const int slots = cache.slots(kind);
      const std::int64_t base = std::int64_t{sequence} * slots;
      for (int i = 0; i < count; ++i) kv_rows_[static_cast<std::size_t>(kind)].push_back(base + (held + i) % slots);
      segments_[static_cast<std::size_t>(kind)].push_back({.query_row = query_row,
                                                           .key_row = base,
                                                           .queries = count,
                                                           .keys = held + count,
                                                           .first_position = held,
                                                           .ring = slots,
                                                           .mask = mask});
    }
  }
  void upload(Device& on) {
    lists_.clear();
    ids_at_ = lists_.add(ids_);
    positions_at_ = lists_.add(positions_);
    last_rows_at_ = lists_.add(last_rows_);
    cross_at_ = lists_.add(cross_);
    segments_at_.clear();
    for (const auto& segments : segments_) segments_at_.push_back(lists_.add(segments));
    kv_rows_at_.clear();
    for (const auto& rows : kv_rows_) kv_rows_at_.push_back(lists_.add(rows));
    rules_at_ = lists_.add(rules_);
    lists_.upload(on);
  }

  std::vector<std::int32_t> ids_, positions_, last_rows_;
  std::vector<int> finished_;
  std::vector<SampleRule> rules_;
  std::vector<std::vector<std::int64_t>> kv_rows_;  // by kind of layer, as the segments
  std::vector<std::vector<Segment>> segments_;
  std::vector<Segment> cross_;
  PackedLists<Device> lists_;
  std::size_t ids_at_ = 0, positions_at_ = 0, last_rows_at_ = 0, cross_at_ = 0, rules_at_ = 0;  // in lists_, as these:
  std::vector<std::size_t> segments_at_, kv_rows_at_;
};

/// A slab that grows: the memory of a pass.
template <class Device>
class PassMemory {
 public:
  std::byte* bytes(Device& on, std::int64_t count) {
    if (static_cast<std::int64_t>(memory_.size()) < count)
      memory_ = Buffer<Device, std::byte>(on, static_cast<std::size_t>(count));
    return memory_.data();
  }

 private:
  Buffer<Device, std::byte> memory_;
};

/// What a state keeps of its passes from call to call: arrays, memory, and what a device has recorded.
template <class Device, class A>
struct PassState {
  PassArrays<Device, A> arrays;
  PassMemory<Device> activations, logits;
  recording_t<Device> recording;
};

}  // namespace typeformer
