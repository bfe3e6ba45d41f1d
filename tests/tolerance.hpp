/// Tolerances that are derived, not chosen: a result may be twice as far from the judge (double) as the naive code of
/// the same precision is, plus a floor for the case that the naive code happens to be exact.
#pragma once
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <string>

namespace tolerance {

/// Half a unit in the last place of 1.
inline constexpr double f32_roundoff = 0x1p-24;
inline constexpr double bf16_roundoff = 0x1p-8;
inline constexpr double f16_roundoff = 0x1p-11;

/// What the floor depends on.
struct Rounding {
  std::size_t terms = 1;           ///< the longest sum behind one element (d_model, d_ff, keys, tokens of a gradient)
  double roundoff = f32_roundoff;  ///< of the arithmetic
  double magnitude = 0;            ///< of the sums where nothing cancels; 0: the largest element of the judge
};

/// floor = floor_factor * roundoff * sqrt(terms) * magnitude * sqrt(elements), a norm over the tensor.
///
/// A sum of n terms of size s has partial sums of size s sqrt(k), each rounded with an error of up to roundoff * that;
/// independent errors add up to roundoff * s * n / sqrt(6), and the sum itself is of size s sqrt(n): relative to it
/// that is 0.41 roundoff sqrt(n). `elements` independent errors make the norm sqrt(elements) times one error. The
/// largest element stands for the size of the sums; it is two to four times the typical one, and that is all the room
/// there is: of float sums of 4 to 4096 terms in three orders, the worst of a hundred lay at 0.2 to 0.6 of the floor
/// with 8 elements and at 0.1 with 1024 (tests/reference/tolerance_test.cpp measures it again). A lone element whose
/// sum cancels, or a gradient that is zero in theory (a key bias without RoPE), tells nothing about its terms: give
/// their magnitude.
inline constexpr double floor_factor = 1;

struct Verdict {
  bool ok = false;
  double error = 0;        ///< norm of ours - judge
  double naive_error = 0;  ///< norm of naive - judge
  double floor = 0;
  double bound = 0;
  std::string message;  ///< name, numbers and the worst element, also when all is well
};

namespace detail {

inline std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.9g", value);
  return text;
}

/// Norm of a - b, and where they differ most. NaN stays NaN.
template <class A, class B>
double distance(const A& a, const B& b, std::size_t& worst) {
  double sum = 0, largest = -1;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double difference = std::fabs(static_cast<double>(a[i]) - static_cast<double>(b[i]));
    sum += difference * difference;
    if (difference <= largest) continue;  // taken also when it is NaN
    largest = difference;
    worst = i;
    if (std::isnan(difference)) break;
  }
  return std::sqrt(sum);
}

template <class A>
double largest(const A& a) {
  double result = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double size = std::fabs(static_cast<double>(a[i]));
    if (!(size <= result)) result = size;
  }
  return result;
}

template <class A, class B>
Verdict sizes_differ(const std::string& name, const A& judge, const B& other) {
  Verdict verdict;
  verdict.message = name + ": the judge has " + std::to_string(judge.size()) + " elements, the other result " +
                    std::to_string(other.size());
  return verdict;
}

}  // namespace detail

/// The same where the naive code's error is known, not its result: |ours - judge| <= 2 naive_error + floor.
template <class Judge, class Ours>
Verdict compare_error(const std::string& name, const Judge& judge, double naive_error, const Ours& ours,
                      const Rounding& rounding) {
  if (judge.size() != ours.size()) return detail::sizes_differ(name, judge, ours);
  Verdict verdict;
  std::size_t worst = 0;
  const double magnitude = rounding.magnitude > 0 ? rounding.magnitude : detail::largest(judge);
  verdict.error = detail::distance(ours, judge, worst);
  verdict.naive_error = naive_error;
  verdict.floor = floor_factor * rounding.roundoff * std::sqrt(static_cast<double>(rounding.terms)) * magnitude *
                  std::sqrt(static_cast<double>(judge.size()));
  verdict.bound = 2 * verdict.naive_error + verdict.floor;
  verdict.ok = verdict.error <= verdict.bound;  // false for NaN
  verdict.message = name + ": error " + detail::number(verdict.error) + (verdict.ok ? " within" : " exceeds") +
                    " the bound " + detail::number(verdict.bound) + " (twice the naive error " +
                    detail::number(verdict.naive_error) + ", floor " + detail::number(verdict.floor) + ")";
  if (judge.size() == 0) return verdict;
  verdict.message += "; worst element " + std::to_string(worst) + ": " +
                     detail::number(static_cast<double>(ours[worst])) + ", judge " +
                     detail::number(static_cast<double>(judge[worst]));
  return verdict;
}

/// Norm over the whole tensor: |ours - judge| <= 2 |naive - judge| + floor. Arguments: vectors or spans of numbers.
template <class Judge, class Naive, class Ours>
Verdict compare(const std::string& name, const Judge& judge, const Naive& naive, const Ours& ours,
                const Rounding& rounding) {
  if (judge.size() != naive.size()) return detail::sizes_differ(name, judge, naive);
  std::size_t ignored = 0;
  return compare_error(name, judge, detail::distance(naive, judge, ignored), ours, rounding);
}

/// Largest logit difference that tiny f32 models may have, relative to the largest logit: 1e-4 would hide GELU's two
/// forms.
inline constexpr double tiny_logits_ceiling = 5e-5;
/// The same for the norm of the difference over the norm, after 30 layers in f32.
inline constexpr double deep_model_ceiling = 1e-4;

/// Largest difference over the largest element of the judge <= ceiling: the limit that no derivation may exceed.
template <class Judge, class Ours>
Verdict below_ceiling(const std::string& name, const Judge& judge, const Ours& ours,
                      double ceiling = tiny_logits_ceiling) {
  if (judge.size() != ours.size()) return detail::sizes_differ(name, judge, ours);
  Verdict verdict;
  if (judge.size() == 0) {
    verdict.ok = true;
    return verdict;
  }
  std::size_t worst = 0;
  detail::distance(ours, judge, worst);
  verdict.error = std::fabs(static_cast<double>(ours[worst]) - static_cast<double>(judge[worst]));
  verdict.bound = ceiling * detail::largest(judge);
  verdict.ok = verdict.error <= verdict.bound;
  verdict.message = name + ": largest error " + detail::number(verdict.error) + (verdict.ok ? " within" : " exceeds") +
                    " the ceiling " + detail::number(verdict.bound) + " at element " + std::to_string(worst) + ": " +
                    detail::number(static_cast<double>(ours[worst])) + ", judge " +
                    detail::number(static_cast<double>(judge[worst]));
  return verdict;
}

}  // namespace tolerance
