// A user's own norm, activation, position and mask run inside our kernels, forward and backward, without a change to
// the library: as on the CPU, whose gradients examples/own_policy.cpp compares with finite differences.
#include "own_policies.hpp"

#include <algorithm>
#include <cmath>

#include "support.hpp"
#include "tolerance.hpp"

namespace {

/// Largest over all tensors of the norm of the difference over the norm.
void check(support::Number number, double roundoff) {
  const auto expected = own_policies::run("cpu", number), ours = own_policies::run("cuda", number);
  REQUIRE(ours.size() == expected.size());
  for (const auto& entry : expected) {
    const auto& numbers = ours.at(entry.first);
    double difference = 0, size = 0;
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      difference += std::pow(numbers[i] - entry.second[i], 2);
      size += std::pow(entry.second[i], 2);
    }
    // Both devices round; a chain of two layers and back has about twenty roundings of a size, sums add as in
    // tolerance.hpp.
    const double bound = 2 * roundoff * std::sqrt(20 * static_cast<double>(own_policies::tokens));
    CHECK_MESSAGE(std::sqrt(difference / size) <= bound, entry.first << ": " << std::sqrt(difference / size));
  }
}

}  // namespace

TEST_CASE("own policies: f32") { check(support::Number::f32, tolerance::f32_roundoff); }
TEST_CASE("own policies: bf16, beside float activations on the CPU") {
  check(support::Number::bf16, tolerance::bf16_roundoff);
}
