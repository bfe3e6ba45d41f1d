/// The race checker's bookkeeping for counters.hpp: gathers the lanes' accesses into warp instructions.
#pragma once
#include <algorithm>
#include <bit>
#include <map>
#include <memory>
#include <unordered_map>

#include "typeformer/simt/counters.hpp"
#include "typeformer/simt/executor.hpp"

namespace typeformer::inline TYPEFORMER_ABI::simt {

/// One warp instruction: the address of each lane that took part.
struct WarpAccess {
  unsigned lanes = 0;
  const char* address[32];
};

/// Distinct values of `values`, which it sorts.
inline std::size_t count_distinct(std::vector<std::uintptr_t>& values) {
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  return values.size();
}

/// Adds the sectors of one warp instruction on global memory.
inline void count_sectors(LineCount& count, const WarpAccess& access) {
  std::vector<std::uintptr_t> sectors, addresses;
  for (unsigned rest = access.lanes; rest; rest &= rest - 1) {
    const auto address = reinterpret_cast<std::uintptr_t>(access.address[std::countr_zero(rest)]);
    addresses.push_back(address);
    for (auto sector = address / 32; sector <= (address + count.bytes - 1) / 32; ++sector) sectors.push_back(sector);
  }
  count.actual += count_distinct(sectors);
  count.ideal += (count_distinct(addresses) * count.bytes + 31) / 32;
}

/// Adds the wavefronts of one warp instruction on shared memory: 8- and 16-byte accesses go in two and four phases.
inline void count_wavefronts(LineCount& count, const WarpAccess& access) {
  const unsigned phases = count.bytes >= 16 ? 4 : count.bytes == 8 ? 2 : 1, lanes_per_phase = 32 / phases;
  for (unsigned phase = 0; phase < phases; ++phase) {
    std::vector<std::uintptr_t> words;
    for (unsigned lane = phase * lanes_per_phase; lane < (phase + 1) * lanes_per_phase; ++lane)
      if (access.lanes >> lane & 1u)
        for (unsigned word = 0; word < std::max(1u, count.bytes / 4); ++word)
          words.push_back(reinterpret_cast<std::uintptr_t>(access.address[lane]) / 4 + word);
    if (count_distinct(words) == 0) continue;
    unsigned bank[32] = {}, worst = 0;
    for (const auto word : words) worst = std::max(worst, ++bank[word % 32]);
    count.actual += worst;
    count.ideal += 1;
  }
}

/// All instructions seen. The n-th execution of an instruction by one lane belongs to the n-th by the others of its
/// warp.
class InstructionCounter {
 public:
  void add(std::uint32_t origin, const Lane& lane, const char* address, std::size_t bytes, bool store, bool shared) {
    Entry& entry = at(origin, bytes, store, shared);
    auto& open = entry.open[lane.warp->index];
    const std::uint32_t turn = entry.turn[lane.id]++;
    if (open.size() <= turn) open.resize(turn + 1);
    open[turn].lanes |= 1u << lane.index;
    open[turn].address[lane.index] = address;
  }
  /// One warp's ldmatrix: eight rows of 16 bytes for each matrix.
  void add_rows(std::uint32_t origin, const void* const* rows, unsigned matrices) {
    Entry& entry = at(origin, 16, false, true);
    for (unsigned k = 0; k < matrices; ++k) {
      WarpAccess access;
      for (unsigned i = 0; i < 8; ++i) access.address[i] = static_cast<const char*>(rows[8 * k + i]);
      access.lanes = 0xffu;
      count_wavefronts(entry.count, access);
    }
    ++entry.count.instructions;
    entry.count.lanes += 32;
  }
  /// Closes the instructions of a block.
  void end_block() {
    for (auto& [key, entry] : entries_) {
      for (auto& open : entry->open) {
        for (const WarpAccess& access : open) close(entry->count, access);
        open.clear();
      }
      std::fill(std::begin(entry->turn), std::end(entry->turn), 0u);
    }
  }
  void reset() { entries_.clear(); }

  template <class Visit>
  void for_each(Visit visit) const {
    for (const auto& [key, entry] : entries_) visit(static_cast<std::uint32_t>(key >> 2), entry->count);
  }

 private:
  struct Entry {
    LineCount count;
    std::vector<WarpAccess> open[Block::max_threads / 32];
    std::uint32_t turn[Block::max_threads] = {};
  };
  /// A copy from global to shared memory is one place, but a load and a store.
  Entry& at(std::uint32_t origin, std::size_t bytes, bool store, bool shared) {
    auto& slot = entries_[std::uint64_t{origin} << 2 | (shared ? 2u : 0u) | (store ? 1u : 0u)];
    if (!slot) slot = std::make_unique<Entry>();
    slot->count.bytes = static_cast<unsigned>(bytes);
    slot->count.store = store;
    slot->count.shared = shared;
    return *slot;
  }
  static void close(LineCount& count, const WarpAccess& access) {
    if (!access.lanes) return;
    ++count.instructions;
    count.lanes += static_cast<unsigned>(std::popcount(access.lanes));
    if (count.shared)
      count_wavefronts(count, access);
    else
      count_sectors(count, access);
  }
  std::unordered_map<std::uint64_t, std::unique_ptr<Entry>> entries_;
};

}  // namespace typeformer
