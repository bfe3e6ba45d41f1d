/// Shared memory of the running block: an arena with guarded zones around every array.
#pragma once
#include <atomic>

#include "typeformer/simt/executor.hpp"

namespace typeformer::inline TYPEFORMER_ABI::simt {

inline constexpr unsigned char zone_byte = 0xA5;    // what a redzone holds
inline constexpr unsigned char poison_byte = 0xFF;  // NaN in float, bf16 and f16

// Not inlined and unseen by the race checker: the layer's own stores are not the kernel's.
TYPEFORMER_SIMT_UNSEEN __attribute__((noinline)) inline void guard_zone(Block& block, char* first, std::size_t bytes) {
  std::memset(first, zone_byte, bytes);
  block.zones.emplace_back(first, first + bytes);
#if defined(TYPEFORMER_SIMT_ASAN)
  __asan_poison_memory_region(first, bytes);
#endif
}

/// Whether the bytes lie in this block's shared memory.
inline bool is_shared(const Block& block, const void* address, std::size_t bytes) {
  const char* first = static_cast<const char*>(address);
  return first >= block.arena && first + bytes <= block.arena + block.arena_used;
}

/// Hands out the next piece of the arena, filled with NaN, a redzone behind it. lane is null for the dynamic part.
TYPEFORMER_SIMT_UNSEEN __attribute__((noinline)) inline char* take_shared(Block& block, Lane* lane, std::size_t bytes,
                                                                          std::size_t alignment, Place place) {
  const std::size_t start = (block.arena_used + alignment - 1) / alignment * alignment;
  const std::size_t end = (start + bytes + 15) / 16 * 16;
  block.shared_bytes += bytes;
  const std::size_t static_bytes = block.shared_bytes - block.dynamic_bytes;
  if (lane && static_bytes > options().shared_default)
    fail(*lane, "shared array", place, "at most 48 KiB of static shared memory", message("%zu bytes", static_bytes));
  if (lane && (block.shared_bytes > options().shared_limit || end + Block::redzone > Block::arena_bytes))
    fail(*lane, "shared array", place, "shared memory within the device's limit",
         message("%zu of %zu bytes", block.shared_bytes, options().shared_limit));
#if defined(TYPEFORMER_SIMT_ASAN)
  __asan_unpoison_memory_region(block.arena + block.arena_used, end + Block::redzone - block.arena_used);
#endif
  char* result = block.arena + start;
  if (options().poison) std::memset(result, poison_byte, bytes);
  if (start > block.arena_used) guard_zone(block, block.arena + block.arena_used, start - block.arena_used);
  guard_zone(block, result + bytes, end + Block::redzone - (start + bytes));
  block.arena_used = end + Block::redzone;
  return result;
}

inline unsigned next_shared_slot() {
  static std::atomic<unsigned> count{0};
  return count++;
}

/// The block's array behind TYPEFORMER_SHARED_ARRAY; Tag's type is unique for each declaration.
template <class T, class Tag>
T& static_shared(Tag, Place place = Place::here()) {
  static const unsigned slot = next_shared_slot();
  Lane& lane = *current_lane;
  Block& block = *lane.block;
  if (slot >= block.slot_generation.size()) {
    block.slot_generation.resize(slot + 8, 0);
    block.slot_address.resize(slot + 8, nullptr);
  }
  if (block.slot_generation[slot] != block.generation) {
    block.slot_generation[slot] = block.generation;
    block.slot_address[slot] = take_shared(block, &lane, sizeof(T), std::max<std::size_t>(alignof(T), 16), place);
  }
  return *reinterpret_cast<T*>(block.slot_address[slot]);
}

/// The launch's dynamic shared memory, aligned to 1024 bytes.
template <class T>
T* dynamic_shared() {
  return reinterpret_cast<T*>(current_lane->block->arena + Block::first_zone);
}

/// Lays out the arena for a new block: redzone, dynamic part, redzone; static arrays follow when they are reached.
inline void begin_shared(Block& block) {
#if defined(TYPEFORMER_SIMT_ASAN)
  __asan_unpoison_memory_region(block.arena, Block::arena_bytes);
#endif
  ++block.generation;
  block.zones.clear();
  block.arena_used = block.shared_bytes = 0;
  guard_zone(block, block.arena, Block::first_zone);
  block.arena_used = Block::first_zone;
  take_shared(block, nullptr, block.dynamic_bytes, 16, Place{});
#if defined(TYPEFORMER_SIMT_ASAN)
  __asan_poison_memory_region(block.arena + block.arena_used, Block::arena_bytes - block.arena_used);
#endif
}

/// Records a fault when somebody wrote into a redzone.
inline void end_shared(Block& block) {
#if defined(TYPEFORMER_SIMT_ASAN)
  __asan_unpoison_memory_region(block.arena, Block::arena_bytes);
#endif
  if (block.fault.set) return;
  for (const auto& [first, last] : block.zones)
    for (const char* byte = first; byte < last; ++byte)
      if (static_cast<unsigned char>(*byte) != zone_byte)
        return record_fault(block, nullptr, "shared memory", block.launch_place, "stores inside shared arrays",
                            message("an overwritten redzone at byte %td; the dynamic part is [0, %zu)",
                                    byte - (block.arena + Block::first_zone), block.dynamic_bytes));
}

}  // namespace typeformer
