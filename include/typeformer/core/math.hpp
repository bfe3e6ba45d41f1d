/// The functions that formulas of policies are written with. Each exists for float and double here; lanes, dual numbers
/// and a user's own number types bring theirs, found by argument-dependent lookup.
#pragma once
#include <cmath>

#include "typeformer/core/annotate.hpp"

namespace typeformer::inline TYPEFORMER_ABI {

TYPEFORMER_HD inline float exp(float x) { return std::exp(x); }
TYPEFORMER_HD inline double exp(double x) { return std::exp(x); }
TYPEFORMER_HD inline float log(float x) { return std::log(x); }
TYPEFORMER_HD inline double log(double x) { return std::log(x); }
TYPEFORMER_HD inline float tanh(float x) { return std::tanh(x); }
TYPEFORMER_HD inline double tanh(double x) { return std::tanh(x); }
TYPEFORMER_HD inline float erf(float x) { return std::erf(x); }
TYPEFORMER_HD inline double erf(double x) { return std::erf(x); }
/// 1 / sqrt(x).
TYPEFORMER_HD inline float rsqrt(float x) { return 1.f / std::sqrt(x); }
TYPEFORMER_HD inline double rsqrt(double x) { return 1. / std::sqrt(x); }
/// condition ? a : b, lane by lane.
TYPEFORMER_HD inline float select(bool condition, float a, float b) { return condition ? a : b; }
TYPEFORMER_HD inline double select(bool condition, double a, double b) { return condition ? a : b; }

/// sqrt(x) in a constant expression (Newton's iteration, which descends to the root and stops there). x > 0.
constexpr double constant_sqrt(double x) {
  double root = x < 1 ? 1 : x;
  for (double next = .5 * (root + x / root); next < root; next = .5 * (root + x / root)) root = next;
  return root;
}

}  // namespace typeformer
