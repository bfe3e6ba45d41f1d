/// What the tests of single operations share: inputs that floats hold exactly, and the comparison with the judge.
#pragma once
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "reference.hpp"
#include "reference/random.hpp"
#include "tolerance.hpp"
#include "typeformer/cpu.hpp"
#include "typeformer/typeformer.hpp"

namespace kernel_test {

using namespace typeformer;
using reference::Random;
using reference::sum;  // from + add, for outputs that accumulate
template <class T>
using Numbers = reference::Tensor<T>;

inline constexpr float unset = std::numeric_limits<float>::quiet_NaN();

/// Normally distributed numbers, rounded to float: judge and kernel get the same ones.
inline Numbers<double> draw(Random& random, std::size_t rows, std::size_t columns, double deviation = 1,
                            double mean = 0) {
  auto tensor = reference::random_tensor(random, {rows, columns}, deviation, mean);
  for (double& number : tensor.data) number = static_cast<double>(static_cast<float>(number));
  return tensor;
}
inline std::vector<float> floats(const Numbers<double>& tensor) { return {tensor.data.begin(), tensor.data.end()}; }
inline double largest(const Numbers<double>& tensor) {
  double result = 0;
  for (const double number : tensor.data) result = std::max(result, std::fabs(number));
  return result;
}

/// The rows of a matrix `stride` apart, NaN between them.
inline std::vector<float> strided(const Numbers<double>& tensor, std::size_t stride) {
  std::vector<float> result(tensor.rows() * stride, unset);
  for (std::size_t row = 0; row < tensor.rows(); ++row)
    std::copy_n(tensor.row(row), tensor.columns(), result.begin() + static_cast<std::ptrdiff_t>(row * stride));
  return result;
}
/// The rows again without what lies between them.
inline std::vector<float> dense(const std::vector<float>& from, std::size_t rows, std::size_t columns,
                                std::size_t stride) {
  std::vector<float> result;
  for (std::size_t row = 0; row < rows; ++row)
    for (std::size_t i = 0; i < columns; ++i) result.push_back(from[row * stride + i]);
  return result;
}
/// Whether every element between the rows still is NaN.
inline bool gaps_untouched(const std::vector<float>& from, std::size_t columns, std::size_t stride) {
  for (std::size_t i = 0; i < from.size(); ++i)
    if (i % stride >= columns && !std::isnan(from[i])) return false;
  return true;
}

/// Ours may be twice as far from the judge as the judge's own formula in float, plus the floor of tests/tolerance.hpp.
inline void check(const std::string& name, const Numbers<double>& judge, const Numbers<float>& naive,
                  const std::vector<float>& ours, std::size_t terms, double magnitude = 0) {
  const auto verdict = tolerance::compare(name, judge.data, naive.data, ours,
                                          {.terms = std::max<std::size_t>(terms, 1), .magnitude = magnitude});
  CHECK_MESSAGE(verdict.ok, verdict.message);
}

/// The widths at which loops over lanes begin, end and leave a rest.
inline constexpr std::size_t widths[] = {1, 2, 3, 7, 8, 15, 16, 17, 23, 31, 32, 33, 47, 48, 49, 63, 64, 65, 70};

}  // namespace kernel_test
