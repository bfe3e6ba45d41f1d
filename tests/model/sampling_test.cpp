// Sampling: the likeliest token, the sets that top-k and top-p leave, the distribution, and what is refused.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <set>
#include <vector>

#include "typeformer/model/sampling.hpp"

namespace tf = typeformer;

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();

std::set<std::int32_t> drawn(const std::vector<float>& logits, tf::SamplingOptions options) {
  std::set<std::int32_t> seen;
  for (std::uint64_t step = 0; step < 4000; ++step) seen.insert(tf::sample(logits, options, step));
  return seen;
}

}  // namespace

TEST_CASE("temperature 0 takes the likeliest token, the lowest id of equals") {
  CHECK(tf::sample(std::vector{1.f, 3.f, 2.f}, {}) == 1);
  CHECK(tf::sample(std::vector{3.f, 1.f, 3.f}, {}) == 0);
  CHECK_THROWS_WITH_AS(tf::sample(std::vector{1.f, not_a_number, 2.f}, {}), "sample: logits: expected numbers, got NaN",
                       tf::Error);
  CHECK(tf::sample(std::vector{-infinity, -5.f}, {}) == 1);
}
TEST_CASE("top-k and top-p keep exactly the likeliest tokens") {
  // probabilities 0.5, 0.25, 0.125, 0.125
  const std::vector<float> logits{std::log(.125f), std::log(.5f), std::log(.125f), std::log(.25f), -infinity};
  CHECK(drawn(logits, {.temperature = 1.f}) == std::set<std::int32_t>{0, 1, 2, 3});
  CHECK(drawn(logits, {.temperature = 1.f, .top_k = 1}) == std::set<std::int32_t>{1});
  CHECK(drawn(logits, {.temperature = 1.f, .top_k = 2}) == std::set<std::int32_t>{1, 3});
  CHECK(drawn(logits, {.temperature = 1.f, .top_k = 99}) == std::set<std::int32_t>{0, 1, 2, 3});
  CHECK(drawn(logits, {.temperature = 1.f, .top_p = .4f}) == std::set<std::int32_t>{1});  // the first always stays
  CHECK(drawn(logits, {.temperature = 1.f, .top_p = .7f}) ==
        std::set<std::int32_t>{1, 3});  // 0.5 is below, 0.75 reaches
  CHECK(drawn(logits, {.temperature = 1.f, .top_p = .8f}) ==
        std::set<std::int32_t>{0, 1, 3});  // the lower id of equals
}
TEST_CASE("tokens come as often as softmax(logits / temperature) says") {
  const std::vector<float> logits{0.f, 1.f, 2.f, -1.f};
  const double temperature = .7;
  double total = 0;
  for (const float logit : logits) total += std::exp(double{logit} / temperature);
  const int draws = 40000;
  std::vector<int> counts(logits.size());
  for (int step = 0; step < draws; ++step)
    ++counts[static_cast<std::size_t>(
        tf::sample(logits, {.temperature = .7f, .seed = 3}, static_cast<std::uint64_t>(step)))];
  double chi_square = 0;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const double expected = draws * std::exp(double{logits[i]} / temperature) / total;
    chi_square += (counts[i] - expected) * (counts[i] - expected) / expected;
  }
  CHECK(chi_square < 16.27);  // three degrees of freedom, p = 0.001
}
TEST_CASE("a seed and a step give one token; another seed gives another sequence") {
  const std::vector<float> logits(50, 0.f);
  std::vector<std::int32_t> first, again, other;
  for (std::uint64_t step = 0; step < 20; ++step) {
    first.push_back(tf::sample(logits, {.temperature = 1.f, .seed = 1}, step));
    again.push_back(tf::sample(logits, {.temperature = 1.f, .seed = 1}, step));
    other.push_back(tf::sample(logits, {.temperature = 1.f, .seed = 2}, step));
  }
  CHECK(first == again);
  CHECK(first != other);
}
TEST_CASE("options and logits out of range are refused by name") {
  const std::vector<float> logits{1.f, 2.f};
  CHECK_THROWS_WITH_AS(tf::sample(logits, {.temperature = -1.f}), doctest::Contains("sample: temperature"), tf::Error);
  CHECK_THROWS_WITH_AS(tf::sample(logits, {.temperature = not_a_number}), doctest::Contains("sample: temperature"),
                       tf::Error);
  CHECK_THROWS_WITH_AS(tf::sample(logits, {.top_k = -1}), doctest::Contains("sample: top_k"), tf::Error);
  CHECK_THROWS_WITH_AS(tf::sample(logits, {.top_p = 0.f}), doctest::Contains("sample: top_p"), tf::Error);
  CHECK_THROWS_WITH_AS(tf::sample(logits, {.top_p = 1.1f}), doctest::Contains("sample: top_p"), tf::Error);
  CHECK_THROWS_WITH_AS(tf::sample(std::vector<float>{}, {}), doctest::Contains("sample: logits"), tf::Error);
  CHECK_THROWS_WITH_AS(tf::sample(std::vector{not_a_number, -infinity}, {}), doctest::Contains("sample: logits"),
                       tf::Error);
  CHECK_THROWS_WITH_AS(tf::sample(std::vector{1.f, infinity}, {.temperature = 1.f}), doctest::Contains("finite"),
                       tf::Error);
}
