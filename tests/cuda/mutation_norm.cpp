// What mutate.py runs under the race checker for norm.cuh: rows of one warp and of a whole block, forward and backward.
#include <cstdio>

#include "norm.hpp"
#include "norm_kernels.cpp"

int main() {
  for (const std::size_t width : {40, 1100}) {
    const norms::Case c{.rows = 3, .width = width};
    reference::Tensor<double> rows({c.rows, c.width}), channels({c.width});
    for (std::size_t i = 0; i < rows.size(); ++i) rows.data[i] = std::sin(static_cast<double>(i));
    const norms::Inputs in{rows, rows, channels, channels, rows, rows, channels};
    for (const char* kind : {"layer", "rms"})
      for (const double y : norms::run(kind, support::Number::f32, c, in).y)
        if (y != y) return std::puts("NaN"), 1;
  }
}
