/// Barriers and warp collectives under their CUDA names: shuffles, votes, reductions.
/// Stricter than the hardware: lanes must be at one source line, and a shuffle orders no memory (only barriers do).
#pragma once
#include <type_traits>

#include "typeformer/simt/executor.hpp"

namespace typeformer::inline TYPEFORMER_ABI::simt {

/// Operands and results of votes and integer reductions.
struct WordSlot {
  unsigned in, out;
};

/// Folds the lanes' words with operation(a, b), from the lowest lane up, and gives every lane the result.
template <class Operation>
TYPEFORMER_SIMT_UNSEEN void fold_words(Warp& warp, unsigned mask, Operation operation) {
  // the lane and its slot are the layer's, not the kernel's
  const auto slot = [&](unsigned rest) { return static_cast<WordSlot*>(warp.lanes[std::countr_zero(rest)].slot); };
  unsigned result = slot(mask)->in;
  for (unsigned rest = mask & (mask - 1); rest; rest &= rest - 1) result = operation(result, slot(rest)->in);
  for (unsigned rest = mask; rest; rest &= rest - 1) slot(rest)->out = result;
}

inline unsigned reduce_words(unsigned mask, unsigned value, Resolver resolver, const char* operation, Place place) {
  WordSlot slot{value, 0};
  collective(mask, resolver, &slot, operation, place);
  return slot.out;
}

enum class Shuffle : std::uint8_t { index, up, down, exclusive_or };

struct ShuffleSlot {
  unsigned char in[8], out[8];
  int argument, width;
  Shuffle kind;
};

/// The lane whose value lane `index` gets; outside its segment it keeps its own (PTX shfl.sync).
inline int shuffle_source(const ShuffleSlot& slot, int index) {
  const int first = index / slot.width * slot.width, end = first + slot.width;
  int source = index;
  switch (slot.kind) {
    case Shuffle::index:
      return first + (slot.argument & (slot.width - 1));
    case Shuffle::up:
      source = index - slot.argument;
      return source < first ? index : source;
    case Shuffle::down:
      source = index + slot.argument;
      return source >= end ? index : source;
    case Shuffle::exclusive_or:
      source = index ^ slot.argument;
      return source >= end ? index : source;
  }
  return source;
}

TYPEFORMER_SIMT_UNSEEN inline void resolve_shuffle(Block&, Warp& warp, unsigned mask) {
  for (unsigned rest = mask; rest; rest &= rest - 1) {
    const int index = std::countr_zero(rest);
    auto& slot = *static_cast<ShuffleSlot*>(warp.lanes[index].slot);
    const int source = shuffle_source(slot, index);
    if (source > 31 || source < 0 || !(mask >> source & 1u)) [[unlikely]]
      fail(*current_lane, warp.lanes[index].operation, warp.lanes[index].place, "a source lane inside the mask",
           message("an undefined value: lane %d reads lane %d with mask 0x%08x", index, source, mask));
    std::memcpy(slot.out, static_cast<ShuffleSlot*>(warp.lanes[source].slot)->in, sizeof slot.out);
  }
}

template <class T>
T shuffle(unsigned mask, T value, int argument, int width, Shuffle kind, const char* operation, Place place) {
  static_assert(sizeof(T) <= 8 && std::is_trivially_copyable_v<T>, "A shuffled value has at most 8 bytes.");
  if (width < 1 || width > 32 || (width & (width - 1)))
    fail(*current_lane, operation, place, "a width that is a power of two up to 32", message("%d", width));
  ShuffleSlot slot{};
  std::memcpy(slot.in, &value, sizeof(T));
  slot.argument = argument;
  slot.width = width;
  slot.kind = kind;
  collective(mask, resolve_shuffle, &slot, operation, place);
  T result;
  std::memcpy(&result, slot.out, sizeof(T));
  return result;
}

namespace device {

inline constexpr unsigned full_mask = 0xffffffffu;

inline void __syncthreads(Place place = Place::here()) { block_barrier(false, "__syncthreads", place); }
inline int __syncthreads_or(int predicate, Place place = Place::here()) {
  block_barrier(predicate != 0, "__syncthreads_or", place);
  return current_lane->block->result_or;
}
inline int __syncthreads_and(int predicate, Place place = Place::here()) {
  block_barrier(predicate != 0, "__syncthreads_and", place);
  return current_lane->block->result_and;
}
inline int __syncthreads_count(int predicate, Place place = Place::here()) {
  block_barrier(predicate != 0, "__syncthreads_count", place);
  return current_lane->block->result_count;
}

/// A full mask in an incomplete warp means the lanes that exist, as on hardware.
inline void __syncwarp(unsigned mask = full_mask, Place place = Place::here()) {
  if (mask == full_mask) mask = current_lane->warp->existing;
  collective(
      mask, [](Block&, Warp& warp, unsigned lanes) { checker_warp_sync(warp, lanes); }, nullptr, "__syncwarp", place);
}

template <class T>
T __shfl_sync(unsigned mask, T value, int source, int width = 32, Place place = Place::here()) {
  return shuffle(mask, value, source, width, Shuffle::index, "__shfl_sync", place);
}
template <class T>
T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32, Place place = Place::here()) {
  return shuffle(mask, value, static_cast<int>(delta), width, Shuffle::up, "__shfl_up_sync", place);
}
template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32, Place place = Place::here()) {
  return shuffle(mask, value, static_cast<int>(delta), width, Shuffle::down, "__shfl_down_sync", place);
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int lane_mask, int width = 32, Place place = Place::here()) {
  return shuffle(mask, value, lane_mask, width, Shuffle::exclusive_or, "__shfl_xor_sync", place);
}

inline unsigned __ballot_sync(unsigned mask, int predicate, Place place = Place::here()) {
  const unsigned bit = predicate ? 1u << current_lane->index : 0u;
  constexpr Resolver resolver = [](Block&, Warp& warp, unsigned lanes) {
    fold_words(warp, lanes, [](unsigned a, unsigned b) { return a | b; });
  };
  return reduce_words(mask, bit, resolver, "__ballot_sync", place);
}
inline int __any_sync(unsigned mask, int predicate, Place place = Place::here()) {
  constexpr Resolver resolver = [](Block&, Warp& warp, unsigned lanes) {
    fold_words(warp, lanes, [](unsigned a, unsigned b) { return a | b; });
  };
  return static_cast<int>(reduce_words(mask, predicate != 0, resolver, "__any_sync", place));
}
inline int __all_sync(unsigned mask, int predicate, Place place = Place::here()) {
  constexpr Resolver resolver = [](Block&, Warp& warp, unsigned lanes) {
    fold_words(warp, lanes, [](unsigned a, unsigned b) { return a & b; });
  };
  return static_cast<int>(reduce_words(mask, predicate != 0, resolver, "__all_sync", place));
}

/// Sum (modulo 2^32) of the lanes' values.
template <class T>
requires std::is_same_v<T, unsigned> || std::is_same_v<T, int> T __reduce_add_sync(unsigned mask, T value,
                                                                                   Place place = Place::here()) {
  constexpr Resolver resolver = [](Block&, Warp& warp, unsigned lanes) {
    fold_words(warp, lanes, [](unsigned a, unsigned b) { return a + b; });
  };
  return static_cast<T>(reduce_words(mask, static_cast<unsigned>(value), resolver, "__reduce_add_sync", place));
}
/// Minimum over the lanes, signed or unsigned as T.
template <class T>
requires std::is_same_v<T, unsigned> || std::is_same_v<T, int> T __reduce_min_sync(unsigned mask, T value,
                                                                                   Place place = Place::here()) {
  constexpr Resolver resolver = [](Block&, Warp& warp, unsigned lanes) {
    fold_words(warp, lanes, [](unsigned a, unsigned b) { return static_cast<T>(b) < static_cast<T>(a) ? b : a; });
  };
  return static_cast<T>(reduce_words(mask, static_cast<unsigned>(value), resolver, "__reduce_min_sync", place));
}
/// Maximum over the lanes, signed or unsigned as T.
template <class T>
requires std::is_same_v<T, unsigned> || std::is_same_v<T, int> T __reduce_max_sync(unsigned mask, T value,
                                                                                   Place place = Place::here()) {
  constexpr Resolver resolver = [](Block&, Warp& warp, unsigned lanes) {
    fold_words(warp, lanes, [](unsigned a, unsigned b) { return static_cast<T>(a) < static_cast<T>(b) ? b : a; });
  };
  return static_cast<T>(reduce_words(mask, static_cast<unsigned>(value), resolver, "__reduce_max_sync", place));
}
inline unsigned __reduce_and_sync(unsigned mask, unsigned value, Place place = Place::here()) {
  constexpr Resolver resolver = [](Block&, Warp& warp, unsigned lanes) {
    fold_words(warp, lanes, [](unsigned a, unsigned b) { return a & b; });
  };
  return reduce_words(mask, value, resolver, "__reduce_and_sync", place);
}
inline unsigned __reduce_or_sync(unsigned mask, unsigned value, Place place = Place::here()) {
  constexpr Resolver resolver = [](Block&, Warp& warp, unsigned lanes) {
    fold_words(warp, lanes, [](unsigned a, unsigned b) { return a | b; });
  };
  return reduce_words(mask, value, resolver, "__reduce_or_sync", place);
}
inline unsigned __reduce_xor_sync(unsigned mask, unsigned value, Place place = Place::here()) {
  constexpr Resolver resolver = [](Block&, Warp& warp, unsigned lanes) {
    fold_words(warp, lanes, [](unsigned a, unsigned b) { return a ^ b; });
  };
  return reduce_words(mask, value, resolver, "__reduce_xor_sync", place);
}

}  // namespace device
}  // namespace typeformer
