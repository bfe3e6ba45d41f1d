/// How sample_rows chooses a token: written once, for a thread that has a row for itself and for teams of threads.
///
/// All sums are of integers: likelihoods in units of 2^-40 of the likeliest token's, and counts. They are exact in any
/// order, so every device chooses the same token.
#pragma once
#include <cmath>
#include <cstdint>
#include <numbers>

#include "typeformer/core/annotate.hpp"
#include "typeformer/core/random.hpp"
#include "typeformer/kernel/contract.hpp"

namespace typeformer::inline TYPEFORMER_ABI::detail {

using Amount = unsigned long long;      // as CUDA's atomicAdd takes it
constexpr int largest_vocab = 1 << 23;  // whose likelihoods' sum is an Amount

// --- numbers of a row -----------------------------------------------------------------------------------------------

/// A float's place among all: a < b exactly when order_key(a) < order_key(b), -0 is 0, and NaN is above all.
TYPEFORMER_HD constexpr std::uint32_t order_key(float x) {
  if (x != x) return ~0u;
  const auto bits = __builtin_bit_cast(std::uint32_t, x + 0.f);
  return bits >> 31 ? ~bits : bits | 0x80000000u;
}
constexpr std::uint32_t key_of_infinity = order_key(INFINITY), key_of_nothing = order_key(-INFINITY);

/// What a difference of logits is multiplied with to be one of binary logarithms of likelihoods.
TYPEFORMER_HD inline float bits_per_logit(float temperature) {
  const double bits = std::numbers::log2e / static_cast<double>(temperature);
  return bits < 3e38 ? static_cast<float>(bits) : 3e38f;
}

/// a b in units of 2^-32, as a and b are.
TYPEFORMER_HD constexpr std::uint32_t product(std::uint32_t a, std::uint32_t b) {
  return static_cast<std::uint32_t>(std::uint64_t{a} * b >> 32);
}
/// 2^(40 - bits) as an integer from 0 to 2^40, to 26 binary digits. Integers only, once `bits` is cut off to 26 places:
/// the same everywhere. 2^-f = 1 - f q(f) for f in [0, 1), with the polynomial q through six Chebyshev points.
TYPEFORMER_HD constexpr Amount likelihood(float bits) {
  if (!(bits < 64.f)) return 0;
  const auto fixed = static_cast<std::uint32_t>(bits * 0x1p26f);
  const std::uint32_t f = fixed << 6;  // and all that follow, in units of 2^-32
  std::uint32_t q = 0x78809;
  q = 0x54a612 - product(f, q);
  q = 0x274f388 - product(f, q);
  q = 0xe353290 - product(f, q);
  q = 0x3d7f7506 - product(f, q);
  q = 0xb17217df - product(f, q);
  return ((Amount{1} << 32) - product(f, q)) << 8 >> (fixed >> 26);
}

/// The amount that is reached when `share` of the total is; at least 1.
TYPEFORMER_HD inline Amount reached_at(float share, Amount total) {
  const auto amount = static_cast<Amount>(std::ceil(static_cast<double>(share) * static_cast<double>(total)));
  return amount < 1 ? 1 : amount < total ? amount : total;
}
/// Which unit of the total a number in [0, 1) points to. It is below the total: the highest such number, 1 - 2^-53,
/// takes more off it than rounding can add.
TYPEFORMER_HD inline Amount unit_at(double place, Amount total) {
  return static_cast<Amount>(place * static_cast<double>(total));
}

/// Logits in bins by their distance from the highest: 32 bins for each unit, the last one for all that are far away.
constexpr int choice_bins = 2048;
TYPEFORMER_HD constexpr int distance_bin(float distance) {
  const float bin = distance * 32.f;
  return bin < static_cast<float>(choice_bins - 1) ? static_cast<int>(bin) : choice_bins - 1;
}

/// A row of logits, the highest of which is finite.
struct LogitRow {
  const float* logits;
  int vocab;
  float highest;
  TYPEFORMER_HD std::uint32_t key(int id) const { return order_key(logits[id]); }
  TYPEFORMER_HD float distance(int id) const { return highest - logits[id]; }
};

/// The tokens that are kept: those likelier than `key`'s, and of its equals those up to `last`.
struct KeptTokens {
  std::uint32_t key = 0;
  int last = -1;
  TYPEFORMER_HD bool has(std::uint32_t key_of_id, int id) const {
    return key_of_id > key || (key_of_id == key && id <= last);
  }
};

// --- teams ----------------------------------------------------------------------------------------------------------

/// An index found by adding up amounts.
struct FoundIndex {
  int index;
  Amount rest;    ///< of the target, after the amounts before it
  Amount amount;  ///< its own
};

/// A thread that works alone. What every team has:
///   highest(count, rank)         the largest rank(i)
///   tally(count, bin_of, amount) adds amount(i) to bin bin_of(i), for all i whose amount is above 0
///   tallied(bin)                 what that gave
///   find(count, amount, target)  the first i whose amounts up to its own exceed target(sum of all)
class TeamOfOne {
 public:
  template <class Rank>
  TYPEFORMER_HD Amount highest(int count, const Rank& rank) const {
    Amount highest = 0;
    for (int i = 0; i < count; ++i)
      if (const Amount own = rank(i); own > highest) highest = own;
    return highest;
  }
  template <class Bin, class AmountOf>
  TYPEFORMER_HD void tally(int count, const Bin& bin_of, const AmountOf& amount) {
    for (Amount& bin : bins_) bin = 0;
    for (int i = 0; i < count; ++i)
      if (const Amount more = amount(i)) bins_[bin_of(i)] += more;
  }
  TYPEFORMER_HD Amount tallied(int bin) const { return bins_[bin]; }
  template <class AmountOf, class Target>
  TYPEFORMER_HD FoundIndex find(int count, const AmountOf& amount, const Target& target) const {
    constexpr int pieces = 64;
    const int length = count / pieces + 1;
    Amount sums[pieces], total = 0;
    for (int piece = 0; piece < pieces; ++piece) {
      sums[piece] = 0;
      const std::int64_t begin = std::int64_t{piece} * length, whole = begin + length;
      const std::int64_t end = whole < count ? whole : count;
      for (std::int64_t i = begin; i < end; ++i) sums[piece] += amount(static_cast<int>(i));
      total += sums[piece];
    }
    Amount rest = target(total);
    int index = 0;
    for (int piece = 0; rest >= sums[piece]; ++piece) rest -= sums[piece], index += length;
    for (;; ++index) {
      const Amount own = amount(index);
      if (rest < own) return {index, rest, own};
      rest -= own;
    }
  }

 private:
  Amount bins_[choice_bins];
};

// --- the choice -----------------------------------------------------------------------------------------------------

/// The likeliest tokens, the lower id first among equals, until their amounts reach wanted(sum of all). Selection digit
/// by digit: first by the distance from the highest, which spreads logits well, then by the bits of their keys.
template <class Team, class AmountOf, class Wanted>
TYPEFORMER_HD KeptTokens likeliest(Team& team, const LogitRow& row, const AmountOf& amount, const Wanted& wanted) {
  const auto tallied = [&](int bin) { return team.tallied(bin); };
  team.tally(
      row.vocab, [&](int id) { return distance_bin(row.distance(id)); }, amount);
  FoundIndex found = team.find(choice_bins, tallied, [&](Amount total) { return wanted(total) - 1; });
  const int bin = found.index;
  std::uint32_t key = 0, known = 0;  // the bits of the key that are known, and which these are
  for (int digit = 0; digit < 3; ++digit) {
    const int shift = digit == 0 ? 21 : digit == 1 ? 10 : 0;
    const auto in_question = [&](int id) {
      return distance_bin(row.distance(id)) == bin && (row.key(id) & known) == key ? amount(id) : 0;
    };
    constexpr std::uint32_t digits = choice_bins - 1;
    team.tally(
        row.vocab, [&](int id) { return static_cast<int>(digits - (row.key(id) >> shift & digits)); }, in_question);
    found = team.find(choice_bins, tallied, [rest = found.rest](Amount) { return rest; });
    key |= (digits - static_cast<std::uint32_t>(found.index)) << shift;
    known |= digits << shift;
  }
  const auto equals = [&](int id) { return row.key(id) == key ? amount(id) : 0; };
  return {key, team.find(row.vocab, equals, [rest = found.rest](Amount) { return rest; }).index};
}

/// The token of a row, as SampleArgs says: an id, or a NoToken. Every thread of the team gets it.
template <class Team>
TYPEFORMER_HD std::int32_t choose_token(Team& team, const float* logits, int vocab, const SampleRule& rule) {
  const Amount first = team.highest(vocab, [&](int id) {  // the highest key, and of equals the lowest id
    return Amount{order_key(logits[id])} << 32 | (~0u - static_cast<std::uint32_t>(id));
  });
  const auto key = static_cast<std::uint32_t>(first >> 32);
  if (key > key_of_infinity) return static_cast<std::int32_t>(NoToken::not_a_number);
  if (key == key_of_infinity) return static_cast<std::int32_t>(NoToken::infinite);
  if (key == key_of_nothing) return static_cast<std::int32_t>(NoToken::nothing);
  const auto best = static_cast<int>(~0u - static_cast<std::uint32_t>(first));
  if (rule.temperature == 0.f) return best;

  const LogitRow row{logits, vocab, logits[best]};
  const float scale = bits_per_logit(rule.temperature);
  KeptTokens kept;
  if (rule.top_k > 0 && rule.top_k < vocab)
    kept = likeliest(
        team, row, [](int) { return Amount{1}; }, [&](Amount) { return static_cast<Amount>(rule.top_k); });
  const auto weight = [&](int id) {
    return kept.has(row.key(id), id) ? likelihood(row.distance(id) * scale) : Amount{0};
  };
  if (rule.top_p < 1.f)
    kept = likeliest(team, row, weight, [&](Amount total) { return reached_at(rule.top_p, total); });
  const double place = uniform(rule.seed, rule.step);
  return team.find(vocab, weight, [&](Amount total) { return unit_at(place, total); }).index;
}

}  // namespace typeformer::inline TYPEFORMER_ABI::detail
