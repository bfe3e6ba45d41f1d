// Measures the floor of the derived tolerance, and sees that wrong results are refused with a useful sentence.
#include "tolerance.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include "reference/random.hpp"

namespace {

using reference::Random;

/// `elements` dot products of n normal numbers: exact (double), and float sums forwards, backwards and in eight lanes.
struct Sums {
  std::vector<double> judge;
  std::vector<float> forwards, backwards, lanes;
};

Sums sums(Random& random, std::size_t n, std::size_t elements) {
  Sums result;
  for (std::size_t e = 0; e < elements; ++e) {
    std::vector<float> a(n), b(n);
    for (float& x : a) x = static_cast<float>(random.normal());
    for (float& x : b) x = static_cast<float>(random.normal());
    double exact = 0;
    float forwards = 0, backwards = 0, lane[8] = {};
    for (std::size_t i = 0; i < n; ++i) {
      exact += double{a[i]} * double{b[i]};
      forwards += a[i] * b[i];
      backwards += a[n - 1 - i] * b[n - 1 - i];
      lane[i % 8] += a[i] * b[i];
    }
    float lanes = 0;
    for (float part : lane) lanes += part;
    result.judge.push_back(exact);
    result.forwards.push_back(forwards);
    result.backwards.push_back(backwards);
    result.lanes.push_back(lanes);
  }
  return result;
}

TEST_CASE("the floor lies above every order of a float sum, and not far above") {
  Random random(3);
  for (std::size_t n : {4u, 16u, 64u, 256u, 1024u}) {
    for (std::size_t elements : {8u, 64u, 256u}) {
      CAPTURE(n);
      CAPTURE(elements);
      double worst = 0;
      for (int trial = 0; trial < 40; ++trial) {
        const Sums s = sums(random, n, elements);
        for (const std::vector<float>* order : {&s.forwards, &s.backwards, &s.lanes}) {
          const auto verdict = tolerance::compare("sum", s.judge, *order, *order, {n});
          worst = std::max(worst, verdict.error / verdict.floor);
        }
      }
      CHECK(worst < 1);
      CHECK(worst > 0.08);
    }
  }
}

TEST_CASE("another order of a sum passes against an exact naive result, one wrong bit more does not") {
  Random random(4);
  const Sums s = sums(random, 256, 64);
  std::vector<float> rounded(s.judge.begin(), s.judge.end());  // as good as float can be
  const auto lanes = tolerance::compare("lanes", s.judge, rounded, s.lanes, {256});
  CHECK_MESSAGE(lanes.ok, lanes.message);

  std::vector<float> bf16 = s.forwards;  // as if the terms had been cut to 8 bits
  for (float& x : bf16) x *= 1 + 0x1p-8f;
  CHECK_FALSE(tolerance::compare("bf16", s.judge, s.forwards, bf16, {256}).ok);

  std::vector<float> slightly = s.forwards;
  for (float& x : slightly) x *= 1 + 2e-5f;
  CHECK_FALSE(tolerance::compare("relative 2e-5", s.judge, s.forwards, slightly, {256}).ok);

  std::vector<float> one_wrong = s.forwards;
  one_wrong[17] += 2e-3f;
  const auto wrong = tolerance::compare("layers.0.attn", s.judge, s.forwards, one_wrong, {256});
  CHECK_FALSE(wrong.ok);
  CHECK(wrong.message.find("layers.0.attn: error ") == 0);
  CHECK(wrong.message.find("exceeds the bound ") != std::string::npos);
  CHECK(wrong.message.find("worst element 17: ") != std::string::npos);
}

TEST_CASE("not a number, and another size, are never right") {
  const std::vector<double> judge = {1, 2, 3};
  const std::vector<float> naive = {1, 2, 3};
  const std::vector<float> nan = {1, std::numeric_limits<float>::quiet_NaN(), 3}, shorter = {1, 2};
  const std::vector<float> infinite = {1, 2, std::numeric_limits<float>::infinity()};
  CHECK(tolerance::compare("x", judge, naive, naive, {}).ok);
  CHECK_FALSE(tolerance::compare("x", judge, naive, nan, {}).ok);
  CHECK(tolerance::compare("x", judge, naive, nan, {}).message.find("worst element 1") != std::string::npos);
  CHECK_FALSE(tolerance::compare("x", judge, nan, naive, {}).ok);
  CHECK_FALSE(tolerance::compare("x", judge, naive, infinite, {}).ok);
  CHECK_FALSE(tolerance::compare("x", judge, naive, shorter, {}).ok);
  CHECK_FALSE(tolerance::below_ceiling("x", judge, nan).ok);
  CHECK_FALSE(tolerance::below_ceiling("x", judge, shorter).ok);
}

TEST_CASE("a magnitude stands in where the judge's own numbers cancel") {
  const std::vector<double> judge = {0};
  const std::vector<float> naive = {0}, ours = {1e-7f};
  CHECK_FALSE(tolerance::compare("bias", judge, naive, ours, {64}).ok);
  CHECK(tolerance::compare("bias", judge, naive, ours, {64, tolerance::f32_roundoff, 1}).ok);
}

TEST_CASE("the ceiling is relative to the largest element") {
  const std::vector<double> judge = {0.1, -4};
  CHECK(tolerance::below_ceiling("logits", judge, std::vector<float>{0.1f + 1.9e-4f, -4}).ok);
  const auto above = tolerance::below_ceiling("logits", judge, std::vector<float>{0.1f + 2.1e-4f, -4});
  CHECK_FALSE(above.ok);
  CHECK(above.message.find("exceeds the ceiling 0.0002 at element 0: ") != std::string::npos);
}

}  // namespace
