/// linear and its backward on the CPU: y = x W^T + bias (+ residual).
#pragma once
#include <algorithm>

#include "typeformer/kernel/contract.hpp"
#include "typeformer/kernel/cpu/device.hpp"
#include "typeformer/kernel/cpu/lanes.hpp"

namespace typeformer::inline TYPEFORMER_ABI::cpu {
namespace detail {

/// One column of the result for `rows` rows.
template <int rows, class W>
void linear_column(const LinearArgs<float, W>& a, std::int64_t row, int column, std::int64_t x_stride,
                   std::int64_t y_stride) {
  float sums[rows];
  dot_rows<rows>(a.x + row * x_stride, x_stride, a.w + std::int64_t{column} * a.in, a.in, sums);
  for (int r = 0; r < rows; ++r) {
    float value = sums[r];
    if (a.bias) value += a.bias[column];
    if (a.residual) value += a.residual[(row + r) * a.out + column];
    a.y[(row + r) * y_stride + column] = value;
  }
}

}  // namespace detail

/// y = x w^T + bias (+ residual); see LinearArgs. A row's sums do not depend on the number of rows.
template <class W>
void linear(Device& on, const LinearArgs<float, W>& a) {
  const std::int64_t x_stride = a.x_stride ? a.x_stride : a.in, y_stride = a.y_stride ? a.y_stride : a.out;
  on.parallel(a.out, 16, [&](std::int64_t first, std::int64_t last) {
    std::int64_t row = 0;
    for (; row + 4 <= a.rows; row += 4)
      for (auto column = first; column < last; ++column)
        detail::linear_column<4>(a, row, static_cast<int>(column), x_stride, y_stride);
    for (; row < a.rows; ++row)
      for (auto column = first; column < last; ++column)
        detail::linear_column<1>(a, row, static_cast<int>(column), x_stride, y_stride);
  });
}

/// dx = dy w (+=: accumulate), dw += dy^T x, dbias += column sums of dy; see LinearBackwardArgs.
template <class W>
void linear_backward(Device& on, const LinearBackwardArgs<float, W>& a) {
  const std::int64_t x_stride = a.x_stride ? a.x_stride : a.in, dy_stride = a.dy_stride ? a.dy_stride : a.out;
  if (a.dx)
    on.parallel(a.rows, 1, [&](std::int64_t first, std::int64_t last) {
      for (auto row = first; row < last; ++row) {
        float* dx = a.dx + row * a.in;
        if (!a.accumulate) std::fill(dx, dx + a.in, 0.f);
        for (int column = 0; column < a.out; ++column)
          detail::add_scaled(dx, a.dy[row * dy_stride + column], a.w + std::int64_t{column} * a.in, a.in);
      }
    });
  if (!a.dw && !a.dbias) return;
  on.parallel(a.out, 4, [&](std::int64_t first, std::int64_t last) {
    for (auto column = first; column < last; ++column)
      for (std::int64_t row = 0; row < a.rows; ++row) {
        const float dy = a.dy[row * dy_stride + column];
        if (a.dw) detail::add_scaled(a.dw + column * a.in, dy, a.x + row * x_stride, a.in);
        if (a.dbias) a.dbias[column] += dy;
      }
  });
}

}  // namespace typeformer::inline TYPEFORMER_ABI::cpu
