/// The functions that formulas of policies are written with: `math::exp(x)` works for float and double, and for lanes,
/// dual numbers and a user's own number types, whose `exp` is found by argument-dependent lookup. Constants are written
/// T(.5): a number type is constructible from double.
#pragma once
#include <cmath>
#include <type_traits>

#include "typeformer/core/annotate.hpp"

namespace typeformer::inline TYPEFORMER_ABI {
namespace math {

template <class T>
TYPEFORMER_HD T exp(T x) {
  using std::exp;
  return exp(x);
}
template <class T>
TYPEFORMER_HD T log(T x) {
  using std::log;
  return log(x);
}
template <class T>
TYPEFORMER_HD T tanh(T x) {
  using std::tanh;
  return tanh(x);
}
template <class T>
TYPEFORMER_HD T erf(T x) {
  using std::erf;
  return erf(x);
}
template <class T>
TYPEFORMER_HD T sqrt(T x) {
  using std::sqrt;
  return sqrt(x);
}
/// 1 / sqrt(x).
template <class T>
TYPEFORMER_HD T rsqrt(T x) {
  if constexpr (requires { rsqrt_lanes(x); })
    return rsqrt_lanes(x);  // found by argument-dependent lookup
  else
    return T(1) / math::sqrt(x);
}
/// condition ? a : b, lane by lane.
template <class Condition, class T>
TYPEFORMER_HD T select(Condition condition, T a, T b) {
  if constexpr (std::is_same_v<Condition, bool>)
    return condition ? a : b;
  else
    return select_lanes(condition, a, b);  // found by argument-dependent lookup
}

}  // namespace math

/// sqrt(x) in a constant expression (Newton's iteration, which descends to the root and stops there). x > 0.
constexpr double constant_sqrt(double x) {
  double root = x < 1 ? 1 : x;
  for (double next = .5 * (root + x / root); next < root; next = .5 * (root + x / root)) root = next;
  return root;
}

}  // namespace typeformer
