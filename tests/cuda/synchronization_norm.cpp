// What mutate_synchronization.py runs under the race checker for rows.cuh, by norms: rows of one warp and of a whole
// block, forward and backward.
#include <cmath>
#include <cstdio>
#include <vector>

#include "arrays.hpp"

namespace {

using namespace typeformer;
using support::Array;

bool run_width(int width) {
  cuda::Device on;
  constexpr auto form = norm_form(fixed<LayerNorm{}>);
  constexpr int rows = 3;
  std::vector<double> numbers(static_cast<std::size_t>(rows * width));
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = std::sin(static_cast<double>(i));
  Array<float> x(on, numbers), y(on, numbers.size()), channels(on, numbers), mean(on, rows), scale(on, rows),
      sums(on, numbers);
  NormArgs<float> a;
  a.x = x.data();
  a.y = y.data();
  a.gain = a.bias = channels.data();
  a.mean = mean.data();
  a.scale = scale.data();
  a.rows = rows;
  a.width = width;
  norm_rows(on, form, a);
  NormBackwardArgs<float> b;
  b.x = b.dy = x.data();
  b.dx = y.data();
  b.gain = a.gain;
  b.mean = a.mean;
  b.scale = a.scale;
  b.dgain = b.dbias = sums.data();
  b.rows = rows;
  b.width = width;
  norm_rows_backward(on, form, b);
  for (const double dx : y.download())
    if (!std::isfinite(dx)) return false;
  return true;
}

}  // namespace

int main() {
  if (run_width(40) && run_width(1100)) return 0;
  std::puts("not finite");
  return 1;
}
