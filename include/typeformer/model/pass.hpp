/// The tokens of one pass in the device's memory, and where each kind of layer finds their keys.
#pragma once
#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "typeformer/model/batch.hpp"
#include "typeformer/model/block.hpp"
#include "typeformer/model/cache.hpp"

namespace typeformer::inline TYPEFORMER_ABI::detail {

/// Copies values to a buffer, which grows when they do not fit.
template <class Device, class T>
T* fill(Device& on, Buffer<Device, T>& buffer, const std::vector<T>& values) {
  if (buffer.size() < values.size()) buffer = Buffer<Device, T>(on, values.size());
  buffer.upload(values);
  return buffer.data();
}

/// Ids, positions and segments of the tokens of a pass with activations of type A; reused from pass to pass.
template <class Device, class A>
class PassArrays {
 public:
  /// Tokens of sequences that start at position 0 and keep their keys beside their queries.
  void set(Device& on, const Batch& batch, int kinds) {
    begin(batch.ids.size());
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
    upload(on);
  }

  /// Tokens first[s] .. first[s] + count[s] - 1 of each sequence of the batch, appended to what the cache holds.
  template <class S>
  void set(Device& on, const Batch& batch, std::span<const int> first, std::span<const int> count,
           const KVCache<S, Device, A>& cache) {
    begin(0);
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
    }
    upload(on);
    rows_on_device_.resize(kv_rows_.size());
    for (std::size_t kind = 0; kind < kv_rows_.size(); ++kind) fill(on, rows_on_device_[kind], kv_rows_[kind]);
  }

  const std::int32_t* ids() const { return ids_on_device_.data(); }
  const std::int32_t* positions() const { return positions_on_device_.data(); }
  std::int64_t tokens() const { return static_cast<std::int64_t>(ids_.size()); }
  std::span<const Segment> segments(int kind) const { return segments_[static_cast<std::size_t>(kind)]; }

  /// The pass as layers of a kind see it, without an encoder.
  PassTokens<A> of_kind(int kind) const {
    const auto index = static_cast<std::size_t>(kind);
    return {.tokens = tokens(),
            .positions = positions(),
            .kv_rows = kv_rows_.empty() ? nullptr : rows_on_device_[index].data(),
            .segments = segments(kind)};
  }

 private:
  void begin(std::size_t tokens) {
    ids_.clear();
    positions_.clear();
    positions_.reserve(tokens);
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
    fill(on, ids_on_device_, ids_);
    fill(on, positions_on_device_, positions_);
  }

  std::vector<std::int32_t> ids_, positions_;
  std::vector<std::vector<std::int64_t>> kv_rows_;
  std::vector<std::vector<Segment>> segments_;
  Buffer<Device, std::int32_t> ids_on_device_, positions_on_device_;
  std::vector<Buffer<Device, std::int64_t>> rows_on_device_;
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

}  // namespace typeformer
