/// Sums in a fixed order that a compiler can vectorise: sixteen partial sums, added pairwise at the end.
#pragma once
#include <cstdint>

#include "typeformer/core/scalar.hpp"

namespace typeformer::inline TYPEFORMER_ABI::cpu::detail {

inline constexpr int lanes = 16;

/// The partial sums' total, by halving.
inline float total(float (&sums)[lanes]) {
  for (int width = lanes / 2; width > 0; width /= 2)
    for (int i = 0; i < width; ++i) sums[i] += sums[i + width];
  return sums[0];
}

/// sum of term(i), i = 0 .. count - 1.
template <class Term>
inline float sum_of(std::int64_t count, Term&& term) {
  float sums[lanes] = {};
  std::int64_t i = 0;
  for (; i + lanes <= count; i += lanes)
    for (int lane = 0; lane < lanes; ++lane) sums[lane] += term(i + lane);
  for (int lane = 0; i < count; ++i, ++lane) sums[lane] += term(i);
  return total(sums);
}

/// x[r] . w for `rows` rows of x, `stride` elements apart. The order of the sum does not depend on `rows`.
template <int rows, class W>
inline void dot_rows(const float* x, std::int64_t stride, const W* w, int count, float (&result)[rows]) {
  float sums[rows][lanes] = {};
  int i = 0;
  for (; i + lanes <= count; i += lanes) {
    float values[lanes];
    for (int lane = 0; lane < lanes; ++lane) values[lane] = to_float(w[i + lane]);
    for (int r = 0; r < rows; ++r)
      for (int lane = 0; lane < lanes; ++lane) sums[r][lane] += x[r * stride + i + lane] * values[lane];
  }
  for (int lane = 0; i < count; ++i, ++lane)
    for (int r = 0; r < rows; ++r) sums[r][lane] += x[r * stride + i] * to_float(w[i]);
  for (int r = 0; r < rows; ++r) result[r] = total(sums[r]);
}

/// a . b.
inline float dot(const float* a, const float* b, int count) {
  float result[1];
  dot_rows<1>(a, 0, b, count, result);
  return result[0];
}

/// y += factor * x.
template <class W>
inline void add_scaled(float* y, float factor, const W* x, int count) {
  for (int i = 0; i < count; ++i) y[i] += factor * to_float(x[i]);
}

}  // namespace typeformer::inline TYPEFORMER_ABI::cpu::detail
