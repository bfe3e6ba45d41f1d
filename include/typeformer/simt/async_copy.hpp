/// cp.async: copies from global to shared memory whose bytes are garbage until they are waited for.
#pragma once
#include "typeformer/simt/shared_memory.hpp"

namespace typeformer::inline TYPEFORMER_ABI::simt {

// Not inlined: inside an instrumented caller these would count as the kernel's own stores.
TYPEFORMER_SIMT_UNSEEN __attribute__((noinline)) inline void deliver(const AsyncCopy& copy) {
  std::memcpy(copy.destination, copy.source, copy.source_bytes);
  std::memset(static_cast<char*>(copy.destination) + copy.source_bytes, 0, copy.bytes - copy.source_bytes);
}

// Until the wait the destination is garbage.
TYPEFORMER_SIMT_UNSEEN __attribute__((noinline)) inline void scribble(const AsyncCopy& copy) {
  std::memset(copy.destination, poison_byte, copy.bytes);
}

// AddressSanitizer would see the copy only at the wait: touches the bytes where the copy is issued.
inline void touch(const void* address, std::size_t bytes) {
#if defined(TYPEFORMER_SIMT_ASAN)
  if (void* bad = __asan_region_is_poisoned(const_cast<void*>(address), bytes)) (void)*static_cast<volatile char*>(bad);
#else
  (void)address;
  (void)bytes;
#endif
}

/// Starts to copy Bytes (4, 8 or 16) from global to shared memory; only the first source_bytes are read, the rest of
/// the destination becomes zero. Both addresses are multiples of Bytes.
template <int Bytes>
void cp_async_bytes(void* destination, const void* source, unsigned source_bytes, Place place = Place::here()) {
  static_assert(Bytes == 4 || Bytes == 8 || Bytes == 16, "cp.async copies 4, 8 or 16 bytes.");
  Lane& lane = *current_lane;
  Block& block = *lane.block;
  constexpr auto bytes = static_cast<std::uint32_t>(Bytes);
  if (source_bytes > bytes)
    fail(lane, "cp_async", place, "at most the copy's size of source bytes", message("%u of %u", source_bytes, bytes));
  if (!is_shared(block, destination, bytes))
    fail(lane, "cp_async", place, "a destination in shared memory", message("%p", destination));
  if (source_bytes && is_shared(block, source, 1))
    fail(lane, "cp_async", place, "a source in global memory", message("shared memory"));
  if (reinterpret_cast<std::uintptr_t>(destination) % bytes ||
      (source_bytes && reinterpret_cast<std::uintptr_t>(source) % bytes))
    fail(lane, "cp_async", place, "addresses aligned to the copy",
         message("a misaligned %u-byte copy from %p to %p", bytes, source, destination));
  touch(destination, bytes);
  touch(source, source_bytes);
  checker_access(lane, destination, bytes, Access::async_issue, place);
  if (source_bytes) checker_access(lane, source, source_bytes, Access::async_source, place);
  AsyncCopy copy{destination, source, bytes, source_bytes, false};
  const Arrival mode = options().copies;
  copy.arrived = mode == Arrival::early || (mode == Arrival::random && (block.draw() & 1u));
  if (copy.arrived)
    deliver(copy);
  else
    scribble(copy);
  lane.copies.push_back(copy);
  lane.place = place;
}

/// Starts to copy Bytes (4, 8 or 16) from global to shared memory, or to zero the destination when valid is false; the
/// source is then not read. Both addresses are multiples of Bytes.
template <int Bytes>
void cp_async(void* destination, const void* source, bool valid = true, Place place = Place::here()) {
  cp_async_bytes<Bytes>(destination, source, valid ? static_cast<unsigned>(Bytes) : 0u, place);
}

/// Closes the group of copies that this thread issued since the last commit.
inline void cp_async_commit() {
  current_lane->groups.push_back(static_cast<std::uint32_t>(current_lane->copies.size()));
}

/// Completes this thread's copies up to the given one. Other threads still need a barrier to see them.
inline void arrive_until(Lane& lane, std::uint32_t end, Place place) {
  for (; lane.first_copy < end; ++lane.first_copy) {
    const AsyncCopy& copy = lane.copies[lane.first_copy];
    if (!copy.arrived) deliver(copy);
    checker_access(lane, copy.destination, copy.bytes, Access::async_arrival, place);
  }
  if (lane.first_copy < lane.copies.size() || lane.first_group < lane.groups.size()) return;
  lane.copies.clear();
  lane.groups.clear();
  lane.first_copy = lane.first_group = 0;
}

/// Waits until at most the Pending most recent groups of this thread are still in flight.
template <int Pending>
void cp_async_wait(Place place = Place::here()) {
  static_assert(Pending >= 0, "The number of pending groups is not negative.");
  Lane& lane = *current_lane;
  while (lane.groups.size() - lane.first_group > static_cast<std::size_t>(Pending)) {
    const std::uint32_t end = lane.groups[lane.first_group++];
    arrive_until(lane, end, place);
  }
}

/// Waits for all copies of this thread, committed or not.
inline void cp_async_wait_all(Place place = Place::here()) {
  Lane& lane = *current_lane;
  lane.first_group = static_cast<std::uint32_t>(lane.groups.size());
  arrive_until(lane, static_cast<std::uint32_t>(lane.copies.size()), place);
}

}  // namespace typeformer
