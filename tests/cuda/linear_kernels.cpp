// linear and linear_backward, for the tests.
#include <algorithm>

#include "arrays.hpp"
#include "linear.hpp"

namespace linear_cuda {
namespace {

using namespace typeformer;
using support::Array;

/// Rows `stride` apart, NaN between them.
std::vector<double> spread(const reference::Tensor<double>& dense, std::size_t stride) {
  if (stride == 0) return dense.data;
  std::vector<double> rows(dense.rows() * stride, NAN);
  for (std::size_t r = 0; r < dense.rows(); ++r)
    for (std::size_t i = 0; i < dense.columns(); ++i) rows[r * stride + i] = dense(r, i);
  return rows;
}
/// The reverse; what lay between the rows must not have been touched.
std::vector<double> gather(const std::vector<double>& rows, std::size_t width, std::size_t stride) {
  if (stride == 0) return rows;
  std::vector<double> dense;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (i % stride < width)
      dense.push_back(rows[i]);
    else if (!std::isnan(rows[i]))
      return {};
  }
  return dense;
}

template <class T>
Results run_number(const Case& c, const Inputs& in) {
  cuda::Device on;
  Array<T> x(on, spread(in.x, c.x_stride), c.shift), w(on, in.w.data, c.shift), residual(on, in.residual.data, c.shift);
  Array<T> y(on, c.rows * (c.y_stride ? c.y_stride : c.out), c.shift), dy(on, spread(in.dy, c.y_stride), c.shift);
  Array<T> dx(on, in.dx_before.data, c.shift);
  Array<float> bias(on, in.bias.data), dw(on, in.dw_before.data), dbias(on, in.dbias_before.data);
  Results results;

  LinearArgs<T, T> a;
  a.y = c.in_place ? residual.data() : y.data();
  a.x = x.data();
  a.w = w.data();
  a.bias = c.bias ? bias.data() : nullptr;
  a.residual = c.residual ? residual.data() : nullptr;
  a.rows = static_cast<std::int64_t>(c.rows);
  a.in = static_cast<int>(c.in);
  a.out = static_cast<int>(c.out);
  a.x_stride = static_cast<std::int64_t>(c.x_stride);
  a.y_stride = static_cast<std::int64_t>(c.y_stride);
  linear(on, a);
  results.y = c.in_place ? residual.download() : gather(y.download(), c.out, c.y_stride);

  LinearBackwardArgs<T, T> b;
  b.dx = c.dx ? dx.data() : nullptr;
  b.dw = c.dw ? dw.data() : nullptr;
  b.dbias = c.bias && c.dbias ? dbias.data() : nullptr;
  b.dy = dy.data();
  b.x = a.x;
  b.w = a.w;
  b.rows = a.rows;
  b.in = a.in;
  b.out = a.out;
  b.x_stride = a.x_stride;
  b.dy_stride = a.y_stride;
  b.accumulate = c.accumulate;
  linear_backward(on, b);
  results.dx = dx.download();
  results.dw = dw.download();
  results.dbias = dbias.download();
  return results;
}

}  // namespace

Results run(support::Number number, const Case& c, const Inputs& in) {
  return number == support::Number::f32 ? run_number<float>(c, in) : run_number<bf16>(c, in);
}

std::string complaint(const std::string& what) {
  cuda::Device on;
  Array<float> x(on, 64);
  LinearArgs<float, float> a;
  a.rows = 2;
  a.in = what == "in" ? 0 : 4;
  a.out = 4;
  a.x_stride = what == "stride" ? 3 : 0;
  if (what != "null") a.x = a.w = a.y = x.data();
  if (what == "in place") {
    a.residual = a.y;
    a.y_stride = 8;
  }
  try {
    linear(on, a);
  } catch (const Error& error) {
    return error.what();
  }
  return "none";
}

std::size_t plans_after(int calls) {
  cuda::Device on;
  Array<float> x(on, 64), y(on, 64);
  LinearArgs<float, float> a;
  a.x = a.w = x.data();
  a.y = y.data();
  a.rows = a.in = a.out = 4;
  for (int i = 0; i < calls; ++i) linear(on, a);
  a.rows = 3;
  linear(on, a);
  return on.blas().plan_count();
}

Plans plans_of(int shapes) {
  cuda::Device on;
  const auto count = static_cast<std::size_t>(shapes);
  Array<float> x(on, std::vector<double>(count, 3)), w(on, std::vector<double>{2}), y(on, count);
  Plans plans;
  plans.limit = cuda::detail::Blas::plan_limit;
  LinearArgs<float, float> a;
  a.x = x.data();
  a.w = w.data();
  a.y = y.data();
  a.in = a.out = 1;
  for (a.rows = 1; a.rows <= shapes; ++a.rows) {
    linear(on, a);
    plans.most = std::max(plans.most, on.blas().plan_count());
    if (a.rows % 100 != 0 && a.rows != shapes) continue;
    const auto numbers = y.download();
    for (std::size_t i = 0; i < count; ++i)
      plans.right = plans.right && (i < static_cast<std::size_t>(a.rows) ? numbers[i] == 6 : std::isnan(numbers[i]));
  }
  plans.last = on.blas().plan_count();
  return plans;
}

}  // namespace linear_cuda
