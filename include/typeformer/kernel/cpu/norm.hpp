/// norm_rows and its backward on the CPU.
#pragma once
#include <algorithm>
#include <vector>

#include "typeformer/kernel/contract.hpp"
#include "typeformer/kernel/cpu/device.hpp"
#include "typeformer/kernel/cpu/lanes.hpp"

namespace typeformer::inline TYPEFORMER_ABI::cpu {
namespace detail {

/// What a norm knows of a row: the mean (0 unless it is centred), and the factor of its policy's scale().
struct RowStatistics {
  float mean = 0.f, scale = 1.f;
};

/// In two passes, so that a large mean costs no digits.
template <class Norm>
RowStatistics row_statistics(const Norm& norm, const float* x, int width) {
  RowStatistics s;
  const auto n = static_cast<float>(width);
  if constexpr (Norm::centered) s.mean = sum_of(width, [&](std::int64_t i) { return x[i]; }) / n;
  const float mean_square = sum_of(width, [&](std::int64_t i) { return (x[i] - s.mean) * (x[i] - s.mean); }) / n;
  s.scale = norm.policy.scale(mean_square);
  return s;
}

/// The factor that a norm's gain of kind `gain` multiplies with.
template <class Norm>
float gain_at(const float* gain, std::int64_t i) {
  if constexpr (Norm::gain == Gain::one_plus)
    return 1.f + gain[i];
  else if constexpr (Norm::gain == Gain::weight)
    return gain[i];
  else
    return 1.f;
}

/// y = gain * normalize(x) + bias for one row (y may be x).
template <class Norm>
void normalize_row(const Norm& norm, RowStatistics s, float* y, const float* x, const float* gain, const float* bias,
                   int width) {
  for (int i = 0; i < width; ++i) {
    float value = norm.policy.normalize(x[i] - s.mean, s.scale) * gain_at<Norm>(gain, i);
    if constexpr (Norm::has_bias) value += bias[i];
    y[i] = value;
  }
}

/// Where a row's gradients go.
struct RowGradients {
  float* dx = nullptr;     ///< may be dy
  float* dgain = nullptr;  ///< +=
  float* dbias = nullptr;  ///< +=
  bool accumulate = false;
};

/// One row: dx, and what it adds to dgain and dbias.
template <class Norm>
void normalize_row_backward(const Norm& norm, RowStatistics s, const RowGradients& to, const float* dy, const float* x,
                            const float* gain, int width) {
  const auto d = [&](std::int64_t i) { return dy[i] * gain_at<Norm>(gain, i); };
  const auto normalized = [&](std::int64_t i) { return norm.policy.normalize(x[i] - s.mean, s.scale); };
  const auto n = static_cast<float>(width);
  float mean_d = 0.f;
  if constexpr (Norm::centered) mean_d = sum_of(width, d) / n;
  const float mean_d_normalized = sum_of(width, [&](std::int64_t i) { return d(i) * normalized(i); }) / n;
  for (int i = 0; i < width; ++i) {
    if constexpr (Norm::has_gain) to.dgain[i] += dy[i] * normalized(i);
    if constexpr (Norm::has_bias) to.dbias[i] += dy[i];
    const float dx = norm.policy.normalize_backward(d(i), x[i] - s.mean, s.scale, mean_d, mean_d_normalized);
    to.dx[i] = to.accumulate ? to.dx[i] + dx : dx;
  }
}

/// Rows in chunks of fixed length, each chunk with its own gradients of the parameters, added in order afterwards: the
/// sums do not depend on the number of threads. chunk_rows(first, last, partial) works on one; `sizes` floats are
/// partial sums, of `outputs` arrays of `widths`; what `to` has no array for is dropped.
template <class Rows>
void sum_over_chunks(Device& on, std::int64_t rows, std::int64_t chunk, std::size_t sizes, float* const* to,
                     const int* widths, int outputs, Rows&& chunk_rows) {
  const std::int64_t chunks = (rows + chunk - 1) / chunk;
  std::vector<float> partial = Device::temporaries(static_cast<std::size_t>(chunks) * sizes);
  on.parallel(chunks, 1, [&](std::int64_t first, std::int64_t last) {
    for (auto c = first; c < last; ++c)
      chunk_rows(c * chunk, std::min(rows, (c + 1) * chunk), partial.data() + static_cast<std::size_t>(c) * sizes);
  });
  for (std::int64_t c = 0; c < chunks; ++c) {
    const float* from = partial.data() + static_cast<std::size_t>(c) * sizes;
    for (int output = 0; output < outputs; from += widths[output], ++output)
      if (to[output]) add_scaled(to[output], 1.f, from, widths[output]);
  }
}

}  // namespace detail

/// y = gain * normalize(x - mean, scale) + bias (+ residual), row by row; see NormArgs.
template <class Norm>
void norm_rows(Device& on, const Norm& norm, const NormArgs<float>& a) {
  on.parallel(a.rows, 4, [&](std::int64_t first, std::int64_t last) {
    std::vector<float> result(static_cast<std::size_t>(a.width));
    for (auto row = first; row < last; ++row) {
      const float* x = a.x + row * a.width;
      const auto s = detail::row_statistics(norm, x, a.width);
      if (a.mean) a.mean[row] = s.mean;
      if (a.scale) a.scale[row] = s.scale;
      detail::normalize_row(norm, s, result.data(), x, a.gain, a.bias, a.width);
      float* y = a.y + row * a.width;
      for (int i = 0; i < a.width; ++i)
        y[i] = a.residual ? a.residual[row * a.width + i] + result[static_cast<std::size_t>(i)]
                          : result[static_cast<std::size_t>(i)];
    }
  });
}

/// dx from dy, and the gradients of gain and bias (+=), in a fixed order; see NormBackwardArgs.
template <class Norm>
void norm_rows_backward(Device& on, const Norm& norm, const NormBackwardArgs<float>& a) {
  float* const to[] = {a.dgain, a.dbias};
  const int widths[] = {a.width, a.width};
  const auto width = static_cast<std::size_t>(a.width);
  detail::sum_over_chunks(
      on, a.rows, 32, 2 * width, to, widths, 2, [&](std::int64_t first, std::int64_t last, float* partial) {
        for (auto row = first; row < last; ++row) {
          const detail::RowStatistics s{Norm::centered ? a.mean[row] : 0.f, a.scale[row]};
          const auto at = row * a.width;
          detail::normalize_row_backward(norm, s, {a.dx + at, partial, partial + width, a.accumulate}, a.dy + at,
                                         a.x + at, a.gain, a.width);
        }
      });
}

}  // namespace typeformer::inline TYPEFORMER_ABI::cpu
