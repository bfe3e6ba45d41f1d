/// What sample_rows must do, for any device: the tests of each call these with its way to run rows.
#pragma once
#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <set>
#include <vector>

#include "reference/random.hpp"
#include "reference/sampling.hpp"
#include "typeformer/core/random.hpp"
#include "typeformer/kernel/contract.hpp"

namespace sampling {

using typeformer::NoToken;
using typeformer::SampleRule;
using Ids = std::vector<std::int32_t>;
using Logits = std::vector<float>;

inline constexpr float infinity = std::numeric_limits<float>::infinity();
inline constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();
inline constexpr float largest = std::numeric_limits<float>::max();

/// Rows of logits, one after the other, with a rule each.
struct Rows {
  std::size_t vocab = 1;
  Logits logits{};  ///< [rows, vocab]
  std::vector<SampleRule> rules{};

  void add(const Logits& row, const SampleRule& rule) {
    logits.insert(logits.end(), row.begin(), row.end());
    rules.push_back(rule);
  }
  Logits row(std::size_t r) const {
    const auto begin = logits.begin() + static_cast<std::ptrdiff_t>(r * vocab);
    return {begin, begin + static_cast<std::ptrdiff_t>(vocab)};
  }
};
using Sample = std::function<Ids(const Rows&)>;

/// One row, drawn from again and again.
inline Ids draws(const Sample& sample, const Logits& logits, SampleRule rule, int count) {
  Rows rows{.vocab = logits.size()};
  for (int step = 0; step < count; ++step) {
    rule.step = static_cast<std::uint64_t>(step);
    rows.add(logits, rule);
  }
  return sample(rows);
}
/// What is drawn when the random numbers lie in each of `count` equal parts of [0, 1): every token whose probability is
/// 2 / count or more.
inline std::set<std::int32_t> drawn(const Sample& sample, const Logits& logits, SampleRule rule, int count = 16) {
  Rows rows{.vocab = logits.size()};
  for (int part = 0; part < count; ++part) {
    while (static_cast<int>(typeformer::detail::uniform(rule.seed, rule.step) * count) != part) ++rule.step;
    rows.add(logits, rule);
  }
  const Ids ids = sample(rows);
  return {ids.begin(), ids.end()};
}
inline std::int32_t one(const Sample& sample, const Logits& logits, const SampleRule& rule = {}) {
  return draws(sample, logits, rule, 1)[0];
}

/// A rule of any kind: each option at its default, at its extremes and between them.
inline SampleRule random_rule(reference::Random& random, std::size_t vocab) {
  SampleRule rule{.seed = random.bits(), .step = random.below(1000)};
  const float temperatures[] = {0.f, 1e-3f, .1f, .7f, 1.f, 2.f, 30.f, 1e6f};
  rule.temperature = temperatures[random.below(8)];
  const std::size_t counts[] = {0, 0, 1, 2, random.below(vocab) + 1, vocab, vocab + 7};
  rule.top_k = static_cast<std::int32_t>(counts[random.below(7)]);
  const float shares[] = {1.f, 1.f, 1e-6f, .5f, static_cast<float>(random.uniform()), .999f};
  rule.top_p = shares[random.below(6)];
  return rule;
}
/// Logits of any kind: normal ones of several sizes, a few values only (equals), some -infinity.
inline Logits random_logits(reference::Random& random, std::size_t vocab) {
  const double sizes[] = {.01, 1, 4, 4, 50};
  const double size = sizes[random.below(5)], mean = static_cast<double>(random.below(3)) * 10 - 10;
  const bool few = random.below(4) == 0, masked = random.below(4) == 0;
  Logits logits(vocab);
  for (float& logit : logits) {
    logit = static_cast<float>(mean + size * (few ? static_cast<double>(random.below(3)) : random.normal()));
    if (masked && random.below(2) == 0) logit = -infinity;
  }
  if (masked) logits[random.below(vocab)] = 1.f;
  return logits;
}

/// What float roundings of the likelihoods' logarithms make of probabilities: each is off by two parts in 2^24 of its
/// logarithm, which is some log2(vocab) bits where the probability counts; and by 2^-26 from the polynomial.
inline constexpr double doubt = 0x1p-19;

/// Every id is one that the judge allows; all but one in a thousand are the judge's own.
inline void check_with_judge(const Rows& rows, const Ids& ids) {
  REQUIRE(ids.size() == rows.rules.size());
  std::size_t others = 0;
  for (std::size_t r = 0; r < ids.size(); ++r) {
    const SampleRule& rule = rows.rules[r];
    CAPTURE(r);
    CAPTURE(rows.vocab);
    CAPTURE(rule.temperature);
    CAPTURE(rule.top_k);
    CAPTURE(rule.top_p);
    const Logits logits = rows.row(r);
    if (rule.temperature == 0.f) {
      CHECK(ids[r] == std::max_element(logits.begin(), logits.end()) - logits.begin());
      continue;
    }
    const reference::Sampling options{double{rule.temperature}, static_cast<std::size_t>(rule.top_k),
                                      double{rule.top_p}};
    const double place = typeformer::detail::uniform(rule.seed, rule.step);
    CHECK(reference::SamplingJudge(logits, options, doubt).allows(ids[r], place));
    others += !reference::SamplingJudge(logits, options, 0).allows(ids[r], place);
  }
  CHECK(others * 1000 <= ids.size());
}
inline Rows random_rows(std::size_t vocab, std::size_t count, std::uint64_t seed) {
  reference::Random random(seed);
  Rows rows{.vocab = vocab};
  for (std::size_t r = 0; r < count; ++r) rows.add(random_logits(random, vocab), random_rule(random, vocab));
  return rows;
}

inline void check_likeliest(const Sample& sample) {
  CHECK(one(sample, {1.f, 3.f, 2.f}) == 1);
  CHECK(one(sample, {3.f, 1.f, 3.f}) == 0);
  CHECK(one(sample, {-1.f, -0.f, 0.f}) == 1);  // equals, and the lower id of them
  CHECK(one(sample, {-infinity, -5.f, -infinity}) == 1);
  CHECK(one(sample, {-largest, largest}) == 1);
  Logits many(300, -2.f);
  many[257] = many[131] = many[299] = -1.f;
  CHECK(one(sample, many) == 131);
  CHECK(drawn(sample, many, {.temperature = 1.f, .top_k = 1}, 4) == std::set<std::int32_t>{131});
  CHECK(drawn(sample, many, {.temperature = 1.f, .top_p = 1e-9f}, 4) == std::set<std::int32_t>{131});
  CHECK(drawn(sample, many, {.temperature = 1e-45f}) == std::set<std::int32_t>{131, 257, 299});
}

inline void check_kept(const Sample& sample) {
  using Set = std::set<std::int32_t>;
  // probabilities 0.125, 0.5, 0.125, 0.25, 0
  const Logits logits{std::log(.125f), std::log(.5f), std::log(.125f), std::log(.25f), -infinity};
  CHECK(drawn(sample, logits, {.temperature = 1.f}) == Set{0, 1, 2, 3});
  CHECK(drawn(sample, logits, {.temperature = 1.f, .top_k = 2}) == Set{1, 3});
  CHECK(drawn(sample, logits, {.temperature = 1.f, .top_k = 3}) == Set{0, 1, 3});
  CHECK(drawn(sample, logits, {.temperature = 1.f, .top_k = 99}) == Set{0, 1, 2, 3});
  CHECK(drawn(sample, logits, {.temperature = 1.f, .top_p = .4f}) == Set{1});  // the first always stays
  CHECK(drawn(sample, logits, {.temperature = 1.f, .top_p = .7f}) == Set{1, 3});
  CHECK(drawn(sample, logits, {.temperature = 1.f, .top_p = .8f}) == Set{0, 1, 3});
  CHECK(drawn(sample, logits, {.temperature = 1.f, .top_p = .9f}) == Set{0, 1, 2, 3});
  // top_p counts what top_k leaves: 2/3 and 1/3
  CHECK(drawn(sample, logits, {.temperature = 1.f, .top_k = 2, .top_p = .6f}) == Set{1});
  CHECK(drawn(sample, logits, {.temperature = 1.f, .top_k = 2, .top_p = .7f}) == Set{1, 3});
  // equals: the lower ids, wherever a thread or a warp begins
  const Logits equal(100, 2.f);
  Set first40;
  for (std::int32_t id = 0; id < 40; ++id) first40.insert(id);
  CHECK(drawn(sample, equal, {.temperature = 3.f, .top_k = 40}, 80) == first40);
  CHECK(drawn(sample, equal, {.temperature = 3.f, .top_p = .395f}, 80) == first40);
  // neighbors among floats are not equals
  Logits close(70, 1.f);
  close[69] = std::nextafter(1.f, 2.f);
  CHECK(drawn(sample, close, {.temperature = 1.f, .top_k = 1}, 4) == Set{69});
  CHECK(drawn(sample, close, {.temperature = 1.f, .top_k = 2}) == Set{0, 69});
  // logits that are far apart lie in one bin
  const Logits far{-3000.f, -1000.f, -2000.f, 0.f};
  CHECK(drawn(sample, far, {.temperature = 1e6f, .top_k = 2}) == Set{1, 3});
  CHECK(drawn(sample, far, {.temperature = 1e6f, .top_k = 3}) == Set{1, 2, 3});
  CHECK(drawn(sample, {-largest, 0.f, largest}, {.temperature = largest, .top_k = 2}) == Set{1, 2});
}

inline void check_frequencies(const Sample& sample, int count) {
  const Logits logits{0.f, 1.f, 2.f, -1.f, -infinity};
  double total = 0;
  for (const float logit : logits) total += std::exp(double{logit} / double{.7f});
  std::vector<int> counts(logits.size());
  for (const std::int32_t id : draws(sample, logits, {.seed = 3, .temperature = .7f}, count))
    ++counts.at(static_cast<std::size_t>(id));
  CHECK(counts[4] == 0);
  double chi_square = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    const double expected = count * std::exp(double{logits[i]} / double{.7f}) / total;
    chi_square += (counts[i] - expected) * (counts[i] - expected) / expected;
  }
  CHECK(chi_square < 16.27);  // three degrees of freedom, p = 0.001
}

inline void check_no_token(const Sample& sample) {
  const auto says = [&](const Logits& logits, NoToken what) {
    for (const SampleRule& rule : {SampleRule{}, SampleRule{.temperature = 1.f, .top_k = 2, .top_p = .5f}})
      CHECK(one(sample, logits, rule) == static_cast<std::int32_t>(what));
  };
  says({1.f, not_a_number, 2.f}, NoToken::not_a_number);
  says({1.f, -not_a_number, 2.f}, NoToken::not_a_number);
  says({infinity, 1.f, not_a_number}, NoToken::not_a_number);
  says({1.f, infinity, -infinity}, NoToken::infinite);
  says({-infinity, -infinity}, NoToken::nothing);
  says(Logits(70, -infinity), NoToken::nothing);
}

}  // namespace sampling
