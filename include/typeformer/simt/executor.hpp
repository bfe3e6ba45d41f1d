/// The executor: one operating-system thread runs one block, whose CUDA threads are fibers.
/// A lane that reaches a collective publishes its operands and switches to the next runnable lane; the last to arrive
/// computes the result for all. A cooperative scheduler never pre-empts: kernels must not spin on memory.
#pragma once
#include <bit>
#include <memory>
#include <utility>
#include <vector>

#include "typeformer/simt/checker.hpp"
#include "typeformer/simt/fiber.hpp"
#include "typeformer/simt/options.hpp"
#include "typeformer/simt/vector_types.hpp"

namespace typeformer::inline TYPEFORMER_ABI::simt {

namespace device {
// constinit: no initialization check on access. Fibers never move between operating-system threads.
inline constinit thread_local uint3 threadIdx{0, 0, 0};
inline constinit thread_local uint3 blockIdx{0, 0, 0};
inline constinit thread_local dim3 blockDim{};
inline constinit thread_local dim3 gridDim{};
}  // namespace device

/// Computes a collective's result for all lanes of the mask.
using Resolver = void (*)(Block&, Warp&, unsigned mask);

enum class LaneState : std::uint8_t { ready, collective, barrier, done };

/// A cp.async between its issue and its wait.
struct AsyncCopy {
  void* destination;
  const void* source;
  std::uint32_t bytes, source_bytes;
  bool arrived;
};

/// One CUDA thread.
struct Lane {
  Fiber fiber;
  Block* block = nullptr;
  Warp* warp = nullptr;
  unsigned id = 0;     // in the block
  unsigned index = 0;  // in the warp
  uint3 thread{};
  LaneState state = LaneState::ready;
  // the collective or barrier it waits in
  unsigned mask = 0;
  Resolver resolver = nullptr;
  void* slot = nullptr;
  const char* operation = "";
  Place place{};
  // asynchronous copies: groups[i] is the number of copies issued when group i was committed
  std::vector<AsyncCopy> copies;
  std::vector<std::uint32_t> groups;
  std::uint32_t first_copy = 0, first_group = 0;
};

struct Warp {
  Lane* lanes = nullptr;
  unsigned index = 0, size = 0;
  unsigned existing = 0, ready = 0, arrived = 0;  // masks of lanes
};

/// What the first failing thread reported.
struct FaultRecord {
  bool set = false;
  std::string operation, argument, expected, got;
};

/// The block that an operating-system thread runs, and what it keeps from block to block.
struct Block {
  static constexpr unsigned max_threads = 1024;
  Fiber scheduler;  // the operating-system thread itself
  std::unique_ptr<Lane[]> lanes;
  unsigned capacity = 0, threads = 0, warp_count = 0;
  Warp warps[max_threads / 32];
  // __syncthreads
  unsigned at_barrier = 0, done = 0, barrier_epoch = 0, barrier_first = 0;
  Place barrier_place{};
  const char* barrier_operation = "";
  int votes_or = 0, votes_and = 1, votes_count = 0;
  int result_or = 0, result_and = 1, result_count = 0;
  // the kernel
  void (*body)(void*) = nullptr;
  void* body_context = nullptr;
  Place launch_place{};
  std::uint64_t number = 0;        // of the block in its grid
  std::uint64_t launch_first = 0;  // blocks run before this launch; number + launch_first is unique
  FaultRecord fault;
  std::uint64_t random_state = 1;
  // shared memory: see shared_memory.hpp
  static constexpr std::size_t redzone = 256;
  static constexpr std::size_t first_zone = 1024;  // before the dynamic part, which is aligned to it
  static constexpr std::size_t arena_bytes = std::size_t{512} << 10;
  char* arena = nullptr;
  std::size_t dynamic_bytes = 0, arena_used = 0, shared_bytes = 0;
  unsigned generation = 0;
  std::vector<unsigned> slot_generation;
  std::vector<char*> slot_address;
  std::vector<std::pair<char*, char*>> zones;

  Block() {
    adopt_thread(scheduler);
    arena = static_cast<char*>(std::aligned_alloc(1024, arena_bytes));
    if (!arena) throw Error("simt", "shared memory", "memory for it", "none left");
  }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;
  ~Block() {
    for (unsigned i = 0; i < capacity; ++i) free_stack(lanes[i].fiber);
#if defined(TYPEFORMER_SIMT_ASAN)
    __asan_unpoison_memory_region(arena, arena_bytes);
#endif
    std::free(arena);
  }
  std::uint32_t draw() {  // xorshift
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return static_cast<std::uint32_t>(random_state >> 16);
  }
};

inline constinit thread_local Lane* current_lane = nullptr;

inline Block& this_block() {
  static thread_local Block block;
  return block;
}

// ---------------------------------------------------------------- failure

/// Records the first fault of the block without stopping the thread.
inline void record_fault(Block& block, const Lane* lane, const char* operation, Place place, const char* expected,
                         const Message& got) {
  if (!block.fault.set) {
    block.fault.set = true;
    block.fault.operation = operation;
    block.fault.argument = message("%s:%d", place.name(), place.line).text;
    block.fault.expected = expected;
    block.fault.got = got.text;
    const uint3 b = device::blockIdx;
    if (lane) {
      block.fault.got += message(" [block (%u,%u,%u) thread (%u,%u,%u) warp %u lane %u]", b.x, b.y, b.z, lane->thread.x,
                                 lane->thread.y, lane->thread.z, lane->warp->index, lane->index)
                             .text;
    } else {
      block.fault.got += message(" [block (%u,%u,%u)]", b.x, b.y, b.z).text;
    }
  }
  if (options().trap) __builtin_trap();
}

/// Ends the running block with a fault. The fibers are given up where they stand.
[[noreturn]] inline void fail(Lane& lane, const char* operation, Place place, const char* expected,
                              const Message& got) {
  Block& block = *lane.block;
  record_fault(block, &lane, operation, place, expected, got);
  switch_fiber(lane.fiber, block.scheduler, true);
  __builtin_unreachable();
}

/// Where everybody is when no thread can go on.
inline Message describe_deadlock(const Block& block) {
  Message text = message("a deadlock:");
  unsigned waiting = 0;
  for (unsigned i = 0; i < block.threads; ++i) waiting += block.lanes[i].state == LaneState::barrier;
  if (waiting)
    text.add(" %u thread(s) wait in %s at %s:%d, %u returned.", waiting, block.barrier_operation,
             block.barrier_place.name(), block.barrier_place.line, block.done);
  for (unsigned i = 0, shown = 0; i < block.threads && shown < 2; ++i) {
    const Lane& lane = block.lanes[i];
    if (lane.state != LaneState::collective) continue;
    unsigned returned = 0, elsewhere = 0;
    const unsigned missing = lane.mask & ~lane.warp->arrived;
    for (unsigned k = 0; k < lane.warp->size; ++k)
      if (missing >> k & 1u) (lane.warp->lanes[k].state == LaneState::done ? returned : elsewhere) |= 1u << k;
    text.add(
        " Warp %u lane %u waits in %s at %s:%d with mask 0x%08x; missing lanes: returned 0x%08x, elsewhere 0x%08x.",
        lane.warp->index, lane.index, lane.operation, lane.place.name(), lane.place.line, lane.mask, returned,
        elsewhere);
    ++shown;
    i = (lane.warp->index + 1) * 32 - 1;
  }
  return text;
}

// ---------------------------------------------------------------- scheduling

/// A runnable warp other than `warp`, or null. In order: the next one; at random: any.
TYPEFORMER_SIMT_UNSEEN inline Warp* pick_warp(Block& block, unsigned start) {
  for (unsigned i = 0; i < block.warp_count; ++i) {
    Warp& candidate = block.warps[(start + i) % block.warp_count];
    if (candidate.ready) return &candidate;
  }
  return nullptr;
}

/// The lane that runs next when lane `index` of the warp stops, or null when none can.
TYPEFORMER_SIMT_UNSEEN inline Lane* pick(Block& block, Warp& warp, unsigned index) {
  if (options().random()) {
    Warp* chosen = &warp;
    if (!warp.ready || (block.warp_count > 1 && (block.draw() & 7u) == 0))
      chosen = pick_warp(block, block.draw() % block.warp_count);
    if (!chosen) return nullptr;
    const unsigned turn = block.draw() & 31u;
    const auto first = static_cast<unsigned>(std::countr_zero(std::rotr(chosen->ready, static_cast<int>(turn))));
    return &chosen->lanes[(first + turn) & 31u];
  }
  if (!warp.ready) {
    Warp* chosen = pick_warp(block, warp.index + 1);
    return chosen ? &chosen->lanes[std::countr_zero(chosen->ready)] : nullptr;
  }
  const auto higher = static_cast<unsigned>(std::uint64_t{warp.ready} >> (index + 1) << (index + 1));
  return &warp.lanes[std::countr_zero(higher ? higher : warp.ready)];
}

TYPEFORMER_SIMT_UNSEEN inline void go_on_with(Lane& from, Lane& to) {
  if (&to != &from) {
    current_lane = &to;
    switch_fiber(from.fiber, to.fiber);
  }
  device::threadIdx = from.thread;
}

/// Runs other lanes; returns once this one is ready again.
TYPEFORMER_SIMT_UNSEEN inline void wait(Block& block, Lane& lane) {
  Lane* next = pick(block, *lane.warp, lane.index);
  if (!next)
    fail(lane, lane.operation, lane.place, "every thread that others wait for to arrive", describe_deadlock(block));
  go_on_with(lane, *next);
}

/// At random orders, lets others run although this lane could go on.
TYPEFORMER_SIMT_UNSEEN inline void yield(Block& block, Lane& lane) {
  go_on_with(lane, *pick(block, *lane.warp, lane.index));
}

// ---------------------------------------------------------------- block barrier

TYPEFORMER_SIMT_UNSEEN inline void release_barrier(Block& block) {
  for (unsigned i = 0; i < block.warp_count; ++i) {
    Warp& warp = block.warps[i];
    for (unsigned k = 0; k < warp.size; ++k) {
      if (warp.lanes[k].state != LaneState::barrier) continue;
      warp.lanes[k].state = LaneState::ready;
      warp.ready |= 1u << k;
    }
  }
  block.at_barrier = 0;
  ++block.barrier_epoch;
  block.result_or = std::exchange(block.votes_or, 0);
  block.result_and = std::exchange(block.votes_and, 1);
  block.result_count = std::exchange(block.votes_count, 0);
}

/// __syncthreads and its voting forms: returns when every thread of the block has come to the same source line.
inline void block_barrier(bool vote, const char* operation, Place place) {
  Lane& lane = *current_lane;
  Block& block = *lane.block;
  constexpr const char* rule = "all threads of the block at one barrier";
  if (block.at_barrier == 0) {
    block.barrier_place = place;
    block.barrier_operation = operation;
    block.barrier_first = lane.id;
  } else if (!(block.barrier_place == place)) {
    fail(lane, operation, place, rule,
         message("divergent barriers: thread %u waits at %s:%d", block.barrier_first, block.barrier_place.name(),
                 block.barrier_place.line));
  }
  lane.place = place;
  lane.operation = operation;
  block.votes_or |= vote;
  block.votes_and &= vote;
  block.votes_count += vote;
  ++block.at_barrier;
  if (block.at_barrier + block.done == block.threads) {
    if (block.done) fail(lane, operation, place, rule, message("%u thread(s) that already returned", block.done));
    release_barrier(block);
    if (options().random()) yield(block, lane);
    return;
  }
  lane.state = LaneState::barrier;
  lane.warp->ready &= ~(1u << lane.index);
  wait(block, lane);
}

// ---------------------------------------------------------------- warp collective

/// All lanes of the mask came: they must be in the same operation, with the same mask, at the same source line.
inline void check_agreement(Lane& lane, unsigned mask) {
  for (unsigned rest = mask; rest; rest &= rest - 1) {
    const Lane& other = lane.warp->lanes[std::countr_zero(rest)];
    if (other.resolver == lane.resolver && other.mask == mask && other.place == lane.place) [[likely]]
      continue;
    fail(lane, lane.operation, lane.place, "all lanes of the mask in one warp operation",
         message("a mismatch: mask 0x%08x here, lane %u in %s at %s:%d with mask 0x%08x", mask, other.index,
                 other.operation, other.place.name(), other.place.line, other.mask));
  }
}

/// Meets the other lanes of the mask; the last one to arrive calls the resolver, which finds every lane's slot.
inline void collective(unsigned mask, Resolver resolver, void* slot, const char* operation, Place place) {
  Lane& lane = *current_lane;
  Block& block = *lane.block;
  Warp& warp = *lane.warp;
  const unsigned bit = 1u << lane.index;
  if (!(mask & bit)) [[unlikely]]
    fail(lane, operation, place, "a mask that contains the calling lane", message("mask 0x%08x", mask));
  if (mask & ~warp.existing) [[unlikely]]
    fail(lane, operation, place, "a mask of lanes that exist",
         message("mask 0x%08x in a warp of 0x%08x", mask, warp.existing));
  lane.mask = mask;
  lane.resolver = resolver;
  lane.slot = slot;
  lane.operation = operation;
  lane.place = place;
  warp.arrived |= bit;
  if ((warp.arrived & mask) == mask) {
    check_agreement(lane, mask);
    warp.arrived &= ~mask;
    resolver(block, warp, mask);
    warp.ready |= mask;
    for (unsigned rest = mask; rest; rest &= rest - 1) warp.lanes[std::countr_zero(rest)].state = LaneState::ready;
    if (options().random() && (block.draw() & 3u) == 0) yield(block, lane);
    return;
  }
  lane.state = LaneState::collective;
  warp.ready &= ~bit;
  wait(block, lane);
}

}  // namespace typeformer
