/// Byte-pair encoding: a word's bytes become symbols, and the pair of lowest rank is merged until none is left.
#pragma once
#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <queue>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "typeformer/core/annotate.hpp"
#include "typeformer/text/model.hpp"

namespace typeformer::inline TYPEFORMER_ABI::text {

/// (left, right) -> rank and resulting symbol: open addressing, at most half full.
class MergeTable {
 public:
  static constexpr std::uint32_t no_rank = std::numeric_limits<std::uint32_t>::max();

  struct Merge {
    std::uint32_t rank = no_rank;
    std::int32_t result = -1;
  };

  explicit MergeTable(std::size_t merges = 0) : slots_(std::bit_ceil(2 * merges + 2)) {}

  /// A pair given twice keeps the later rank, as the reference implementation's map does.
  /// At most as many pairs as the constructor was told.
  void insert(std::int32_t left, std::int32_t right, Merge merge) {
    Slot& slot = slots_[position(key_of(left, right))];
    slot = {key_of(left, right), merge};
  }

  /// The pair's merge, of rank no_rank when there is none.
  Merge find(std::int32_t left, std::int32_t right) const { return slots_[position(key_of(left, right))].merge; }

 private:
  struct Slot {
    std::uint64_t key = empty;
    Merge merge;
  };
  static constexpr std::uint64_t empty = ~std::uint64_t{0};  // no pair of non-negative ids

  static std::uint64_t key_of(std::int32_t left, std::int32_t right) {
    return std::uint64_t{static_cast<std::uint32_t>(left)} << 32 | static_cast<std::uint32_t>(right);
  }
  std::size_t position(std::uint64_t key) const {
    const std::size_t mask = slots_.size() - 1;
    std::size_t at = static_cast<std::size_t>((key * 0x9e3779b97f4a7c15u) >> 20) & mask;
    while (slots_[at].key != key && slots_[at].key != empty) at = (at + 1) & mask;
    return at;
  }
  std::vector<Slot> slots_;
};

/// Byte-level BPE as tokenizer.json's model of type BPE defines it.
/// Bytes without a symbol become the unknown symbol, or vanish when there is none; their neighbours then meet.
class BytePairModel final : public Model {
 public:
  struct Options {
    std::int32_t unknown = -1;  ///< symbol of a byte that has none; -1: such bytes are dropped
    bool fuse_unknown = false;  ///< neighbouring unknown bytes share one symbol
    /// Words that are one token as a whole, whatever the merges say ('ignore_merges'); empty: none.
    std::unordered_map<std::string, std::int32_t> whole_words = {};
  };

  /// byte_symbols[byte]: its symbol, or -1.
  BytePairModel(std::array<std::int32_t, 256> byte_symbols, MergeTable merges, Options options)
      : byte_symbols_(byte_symbols), merges_(std::move(merges)), options_(std::move(options)) {}

  /// Appends the word's tokens. O(n log n) in its length.
  void encode(std::string_view word, std::vector<std::int32_t>& ids) const override {
    if (!options_.whole_words.empty()) {
      const auto whole = options_.whole_words.find(std::string(word));
      if (whole != options_.whole_words.end()) return ids.push_back(whole->second);
    }
    if (word.size() <= short_word) return encode_short(word, ids);
    encode_long(word, ids);
  }

 private:
  // Below this many bytes a scan for the lowest rank is faster than a heap.
  static constexpr std::size_t short_word = 48;

  // Writes the word's first symbols to `symbols` (room for word.size()) and returns their number.
  std::size_t start(std::string_view word, std::int32_t* symbols) const {
    std::size_t count = 0;
    bool after_unknown = false;
    for (const char byte : word) {
      std::int32_t symbol = byte_symbols_[static_cast<unsigned char>(byte)];
      const bool unknown = symbol < 0;
      if (unknown) symbol = options_.unknown;
      if (symbol < 0 || (unknown && after_unknown && options_.fuse_unknown)) continue;
      after_unknown = unknown;
      symbols[count++] = symbol;
    }
    return count;
  }

  void encode_short(std::string_view word, std::vector<std::int32_t>& ids) const {
    std::array<std::int32_t, short_word> symbols;
    std::array<MergeTable::Merge, short_word> merge;  // merge[i]: of symbols i and i + 1
    std::size_t count = start(word, symbols.data());
    const auto look_up = [&](std::size_t i) {
      merge[i] = i + 1 < count ? merges_.find(symbols[i], symbols[i + 1]) : MergeTable::Merge{};
    };
    for (std::size_t i = 0; i < count; ++i) look_up(i);
    while (count > 1) {
      std::size_t best = 0;
      for (std::size_t i = 1; i + 1 < count; ++i) {
        if (merge[i].rank < merge[best].rank) best = i;
      }
      if (merge[best].rank == MergeTable::no_rank) break;
      symbols[best] = merge[best].result;
      for (std::size_t i = best + 1; i + 1 < count; ++i) {
        symbols[i] = symbols[i + 1];
        merge[i] = merge[i + 1];
      }
      --count;
      look_up(best);
      if (best > 0) look_up(best - 1);
    }
    ids.insert(ids.end(), symbols.data(), symbols.data() + count);
  }

  struct Symbol {
    std::int32_t id;  // -1: merged into its left neighbour
    std::uint32_t previous, next;
  };
  struct Candidate {
    std::uint32_t rank, position;
    std::int32_t result;
  };
  struct Later {  // the queue gives lowest rank first, leftmost among equals
    bool operator()(const Candidate& a, const Candidate& b) const {
      return a.rank != b.rank ? a.rank > b.rank : a.position > b.position;
    }
  };

  void encode_long(std::string_view word, std::vector<std::int32_t>& ids) const {
    std::vector<std::int32_t> first(word.size());
    const std::size_t count = start(word, first.data());
    const auto end = static_cast<std::uint32_t>(count);
    std::vector<Symbol> symbols(count);
    for (std::uint32_t i = 0; i < end; ++i) symbols[i] = {first[i], i - 1, i + 1};
    std::vector<Candidate> candidates;
    const auto candidate = [&](std::uint32_t left) {
      const MergeTable::Merge merge = merges_.find(symbols[left].id, symbols[symbols[left].next].id);
      return Candidate{merge.rank, left, merge.result};
    };
    for (std::uint32_t i = 0; i + 1 < end; ++i) {
      if (const Candidate found = candidate(i); found.rank != MergeTable::no_rank) candidates.push_back(found);
    }
    std::priority_queue<Candidate, std::vector<Candidate>, Later> queue(Later{}, std::move(candidates));
    while (!queue.empty()) {
      const Candidate best = queue.top();
      queue.pop();
      Symbol& left = symbols[best.position];
      if (left.id < 0 || left.next == end) continue;
      const Candidate now = candidate(best.position);  // the pair may have changed since it was queued
      if (now.rank != best.rank || now.result != best.result) continue;
      Symbol& right = symbols[left.next];
      left.id = best.result;
      right.id = -1;
      left.next = right.next;
      if (left.next != end) symbols[left.next].previous = best.position;
      for (const std::uint32_t i : {left.previous, best.position}) {
        if (i >= end || symbols[i].next == end) continue;  // position 0's previous wraps around
        if (const Candidate found = candidate(i); found.rank != MergeTable::no_rank) queue.push(found);
      }
    }
    for (std::uint32_t i = 0; i < end; i = symbols[i].next) ids.push_back(symbols[i].id);
  }

  std::array<std::int32_t, 256> byte_symbols_;
  MergeTable merges_;
  Options options_;
};

}  // namespace typeformer
