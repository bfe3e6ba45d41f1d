// Norms: rows against their formulas written out in double, the backward against dual numbers through the whole row.
#include "typeformer/policy/norm.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "policy/dual.hpp"

namespace tf = typeformer;
using user::Dual;

namespace {

/// A row normalized by the policy's formulas, as NormPolicy's comment says they are used; no gain, no bias.
template <class T, class Norm>
std::vector<T> normalized_row(const Norm& norm, const std::vector<T>& x) {
  const T n = T(static_cast<double>(x.size()));
  T mean = T(0), square = T(0);
  if constexpr (Norm::centered) {
    for (const T& v : x) mean = mean + v;
    mean = mean / n;
  }
  for (const T& v : x) square = square + (v - mean) * (v - mean);
  const T scale = norm.scale(square / n);
  std::vector<T> y;
  for (const T& v : x) y.push_back(norm.normalize(v - mean, scale));
  return y;
}

/// dL/dx by the policy's backward from dL/dnormalized.
template <class Norm>
std::vector<double> backward_row(const Norm& norm, const std::vector<double>& x, const std::vector<double>& d) {
  const auto n = static_cast<double>(x.size());
  double mean = 0, square = 0, mean_d = 0, mean_d_normalized = 0;
  if constexpr (Norm::centered)
    for (const double v : x) mean += v / n;
  for (const double v : x) square += (v - mean) * (v - mean) / n;
  const double scale = norm.scale(square);
  for (std::size_t i = 0; i < x.size(); ++i) {
    if constexpr (Norm::centered) mean_d += d[i] / n;
    mean_d_normalized += d[i] * norm.normalize(x[i] - mean, scale) / n;
  }
  std::vector<double> dx;
  for (std::size_t i = 0; i < x.size(); ++i)
    dx.push_back(norm.normalize_backward(d[i], x[i] - mean, scale, mean_d, mean_d_normalized));
  return dx;
}

const std::vector<std::vector<double>> rows = {
    {.75}, {1.5, -.25}, {2, 2, 2, 2}, {.1, -3.25, 4.5, .625, -1.75, 9.5, -.375}, {1e-3, -2e-3, 1.5e-3}, {0, 0, 0}};
const std::vector<double> gradients = {.5, -1.25, 2.75, -.0625, 1.5, -3, .875};

template <class Norm>
void check_backward(const Norm& norm) {
  for (const std::vector<double>& x : rows) {
    std::vector<double> d(gradients.begin(), gradients.begin() + static_cast<std::ptrdiff_t>(x.size()));
    const std::vector<double> dx = backward_row(norm, x, d);
    for (std::size_t i = 0; i < x.size(); ++i) {
      std::vector<Dual> seeded;
      for (std::size_t k = 0; k < x.size(); ++k) seeded.emplace_back(x[k], k == i ? 1. : 0.);
      const std::vector<Dual> y = normalized_row(norm, seeded);
      double expected = 0, size = 0;
      for (std::size_t k = 0; k < x.size(); ++k) {
        expected += d[k] * y[k].slope;
        size += std::abs(d[k]) * norm.scale(0.);  // the largest slope there is
      }
      CHECK(std::abs(dx[i] - expected) <= 1e-13 * size);
    }
  }
}

}  // namespace

TEST_CASE("RMSNorm divides by the root of the mean square plus eps") {
  for (const float eps : {0.f, 1e-6f, .125f}) {
    for (const auto& x : rows) {
      double mean_square = 0;
      for (const double v : x) mean_square += v * v / static_cast<double>(x.size());
      if (mean_square + double{eps} == 0) continue;
      const auto y = normalized_row(tf::RMSNorm{.eps = eps}, x);
      for (std::size_t i = 0; i < x.size(); ++i)
        CHECK(y[i] == doctest::Approx(x[i] / std::sqrt(mean_square + double{eps})).epsilon(1e-14));
    }
  }
}

TEST_CASE("LayerNorm subtracts the mean and divides by the root of the biased variance plus eps") {
  for (const float eps : {1e-12f, 1e-5f, .125f}) {
    for (const auto& x : rows) {
      const auto n = static_cast<double>(x.size());
      double mean = 0, variance = 0;
      for (const double v : x) mean += v / n;
      for (const double v : x) variance += (v - mean) * (v - mean) / n;
      const auto y = normalized_row(tf::LayerNorm{.eps = eps}, x);
      for (std::size_t i = 0; i < x.size(); ++i)
        CHECK(std::abs(y[i] - (x[i] - mean) / std::sqrt(variance + double{eps})) <= 1e-14 * std::sqrt(n));
    }
  }
}

TEST_CASE("NoNorm leaves a row as it is") {
  for (const auto& x : rows) CHECK(normalized_row(tf::NoNorm{}, x) == x);
  CHECK(backward_row(tf::NoNorm{}, {1, 2, 3}, {4, 5, 6}) == std::vector<double>{4, 5, 6});
}

TEST_CASE("the backward of every norm is its derivative") {
  check_backward(tf::RMSNorm{.eps = 1e-5f});
  check_backward(tf::RMSNorm{.eps = .25f});
  check_backward(tf::LayerNorm{.eps = 1e-5f});
  check_backward(tf::LayerNorm{.eps = .25f});
  check_backward(tf::NoNorm{});
}

TEST_CASE("in float the formulas lose a few roundings, not more") {
  const std::vector<float> x = {.1f, -3.25f, 4.5f, .625f, -1.75f, 9.5f, -.375f};
  const auto y = normalized_row(tf::RMSNorm{}, x);
  const auto exact = normalized_row(tf::RMSNorm{}, std::vector<double>(x.begin(), x.end()));
  for (std::size_t i = 0; i < x.size(); ++i) CHECK(std::abs(double{y[i]} - exact[i]) <= 8 * 6e-8 * std::abs(exact[i]));
}

TEST_CASE("a norm says which parameters it learns") {
  CHECK(tf::RMSNorm{}.gain == tf::Gain::weight);
  CHECK_FALSE(tf::RMSNorm{}.bias);
  CHECK(tf::LayerNorm{}.bias);
  CHECK(tf::NoNorm{}.gain == tf::Gain::none);
  constexpr auto form = tf::norm_form(tf::fixed<tf::RMSNorm{.eps = 2.f, .gain = tf::Gain::one_plus}>);
  static_assert(form.gain == tf::Gain::one_plus && form.has_gain && !form.has_bias && !form.centered);
  CHECK(form.policy.scale(2.f) == .5f);
  // The numbers are fields, not part of the kernel's type.
  static_assert(std::is_same_v<decltype(tf::norm_form(tf::fixed<tf::RMSNorm{.eps = 1e-5f}>)),
                               decltype(tf::norm_form(tf::fixed<tf::RMSNorm{.eps = 1e-6f}>))>);
  static_assert(!std::is_same_v<decltype(tf::norm_form(tf::fixed<tf::LayerNorm{}>)),
                                decltype(tf::norm_form(tf::fixed<tf::LayerNorm{.bias = false}>))>);
}
