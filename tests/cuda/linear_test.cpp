// linear and linear_backward against the judge and PyTorch: strides, residual in place, accumulation, missing parts;
// and a thousand shapes.
#include "linear.hpp"

#include <algorithm>

#include "reference/gradient.hpp"
#include "reference/operation.hpp"
#include "support.hpp"

namespace {

using linear_cuda::Case;
using linear_cuda::Inputs;
using linear_cuda::Results;
using reference::Tensor;
using support::Number;

template <class N>
Results judge(const Case& c, const Inputs& in) {
  if (c.rows == 0) return {{}, {}, in.dw_before.data, in.dbias_before.data};
  const auto as = [](const Tensor<double>& tensor) { return reference::convert<N>(tensor); };
  const auto wide = [](const Tensor<N>& tensor) { return reference::convert<double>(tensor).data; };
  const auto formula = [&](const auto& inputs) {
    return reference::linear(inputs[0], inputs[1], c.bias ? &inputs[2] : nullptr);
  };
  const std::vector<Tensor<N>> inputs{as(in.x), as(in.w), as(in.bias)};
  Tensor<N> y = formula(inputs);
  if (c.residual) reference::accumulate(y, as(in.residual));
  auto gradients = reference::pullback(formula, inputs, as(in.dy));
  const auto sum = [&](Tensor<N> gradient, const Tensor<double>& before, bool wanted, bool accumulate) {
    if (!wanted) return before.data;
    if (accumulate) reference::accumulate(gradient, as(before));
    return wide(gradient);
  };
  return {wide(y), sum(gradients[0], in.dx_before, c.dx, c.accumulate), sum(gradients[1], in.dw_before, c.dw, true),
          sum(gradients[2], in.dbias_before, c.bias && c.dbias, true)};
}

Inputs draw(Number number, const Case& c, std::uint64_t seed = 0) {
  reference::Random random(seed + c.rows * 100 + c.in * 10 + c.out);
  Inputs in;
  in.x = support::draw(number, random, {c.rows, c.in});
  in.w = support::draw(number, random, {c.out, c.in}, .3);
  in.bias = support::draw(number, random, {c.out});  // what bf16 holds: the epilogue rounds it
  in.residual = support::draw(number, random, {c.rows, c.out});
  in.dy = support::draw(number, random, {c.rows, c.out});
  in.dx_before = support::draw(number, random, {c.rows, c.in});
  in.dw_before = support::draw(Number::f32, random, {c.out, c.in});
  in.dbias_before = support::draw(Number::f32, random, {c.out});
  return in;
}

double largest(const std::vector<double>& numbers) {
  double result = 0;
  for (const double number : numbers) result = std::fmax(result, std::fabs(number));
  return result;
}
/// The largest of sums whose terms have the sizes a * b and c: where they cancel, the sum does not tell.
double size_of(const std::vector<double>& sums, const Tensor<double>& a, const Tensor<double>& b,
               const Tensor<double>& c) {
  return std::max({largest(sums), largest(a.data) * largest(b.data), largest(c.data)});
}

void check(Number number, const Case& c, std::uint64_t seed = 0) {
  CAPTURE(c.rows);
  CAPTURE(c.in);
  CAPTURE(c.out);
  CAPTURE(c.x_stride);
  CAPTURE(c.y_stride);
  CAPTURE(c.shift);
  CAPTURE(number == Number::bf16);
  const Inputs in = draw(number, c, seed);
  const Results expected = judge<double>(c, in), naive = judge<float>(c, in), ours = linear_cuda::run(number, c, in);
  const Tensor<double> one({1}, {1});
  support::compare(number, "y", expected.y, naive.y, ours.y, c.in + 2, size_of(expected.y, in.x, in.w, in.residual));
  support::compare(number, "dx", expected.dx, naive.dx, ours.dx, c.out + 1,
                   size_of(expected.dx, in.dy, in.w, in.dx_before));
  support::compare(Number::f32, "dw", expected.dw, naive.dw, ours.dw, c.rows + 1,
                   size_of(expected.dw, in.dy, in.x, in.dw_before));
  support::compare(Number::f32, "dbias", expected.dbias, naive.dbias, ours.dbias, c.rows + 1,
                   size_of(expected.dbias, in.dy, one, in.dbias_before));
}
void check(const Case& c) {
  for (const Number number : {Number::f32, Number::bf16}) check(number, c);
}

TEST_CASE("linear") {
  check({.rows = 1, .in = 1, .out = 1});
  check({.rows = 5, .in = 17, .out = 9, .bias = false});
  check({.rows = 33, .in = 24, .out = 40, .residual = true});
  check({.rows = 7, .in = 16, .out = 8, .residual = true, .in_place = true, .accumulate = true});
  check({.rows = 6, .in = 10, .out = 12, .x_stride = 13, .y_stride = 20, .residual = true, .accumulate = true});
  check({.rows = 9, .in = 11, .out = 130, .shift = 1});
  check({.rows = 150, .in = 8, .out = 5, .bias = false, .residual = true});
  check({.rows = 220, .in = 3, .out = 4});  // seven slabs of the bias' gradient
}

TEST_CASE("linear: a thousand shapes") {
  const int cases = support::random_cases(1000);
  for (int i = 0; i < cases; ++i) {
    reference::Random random(static_cast<std::uint64_t>(i) * 7919 + 4);
    const auto below = [&](std::size_t n) { return random.below(n); };
    const auto width = [&] {
      const std::size_t widths[] = {1 + below(12), 8 * (1 + below(6)), 1 + below(40), 1 + below(140)};
      return widths[below(10) ? below(3) : 3];  // a block of the bias' gradient has 128 columns
    };
    Case c;
    const std::size_t rows[] = {below(3), 1 + below(20), 30 + below(5), below(100)};  // a slab of it has 32 rows
    c.rows = rows[below(10) ? below(2) : 2 + below(2)];
    c.in = width();
    c.out = width();
    c.x_stride = below(3) == 0 ? c.in + below(9) : 0;
    c.y_stride = below(3) == 0 ? c.out + below(9) : 0;
    c.shift = below(3) == 0 ? below(5) : 0;
    c.bias = below(3) != 0;
    c.residual = below(2) == 0;
    c.in_place = c.residual && c.y_stride == 0 && below(2) == 0;
    c.accumulate = below(2) == 0;
    c.dx = below(6) != 0;
    c.dw = below(6) != 0;
    c.dbias = below(6) != 0;
    check(below(2) ? Number::f32 : Number::bf16, c, static_cast<std::uint64_t>(i));
  }
}

/// Sums of 4097 - 4096: bf16 has no 4097, float has.
TEST_CASE("linear: parts of a sum are not rounded") {
  const Case c{.rows = 4, .in = 8194, .out = 4, .bias = false};
  Inputs in = draw(Number::bf16, c);
  for (double& x : in.x.data) x = 1;
  for (std::size_t i = 0; i < in.w.data.size(); ++i) {
    const std::size_t k = i % c.in;
    in.w.data[i] = k < 4097 ? 1 : k < 8193 ? -1 : 0;
  }
  CHECK(linear_cuda::run(Number::bf16, c, in).y == std::vector<double>(16, 1));
}

TEST_CASE("linear: no rows") {
  const Case c{.rows = 0, .in = 4, .out = 3};
  const Inputs in = draw(Number::f32, c);
  const Results ours = linear_cuda::run(Number::f32, c, in);
  CHECK((ours.y.empty() && ours.dx.empty() && ours.dw == in.dw_before.data && ours.dbias == in.dbias_before.data));
}

TEST_CASE("linear: one algorithm per shape") { CHECK(linear_cuda::plans_after(3) == 2); }
TEST_CASE("linear: lengths without end take no memory without end") {
  const auto plans = linear_cuda::plans_of(600);
  CHECK(plans.right);
  CHECK(plans.most == plans.limit);
  CHECK(plans.last == 600 - plans.limit);
}

TEST_CASE("linear: wrong arguments are named") {
  CHECK(linear_cuda::complaint("in") == "linear: in, out: expected 1 or more, got 0 and 4");
  CHECK(linear_cuda::complaint("stride") == "linear: x_stride: expected 0 or at least in, got 3");
  CHECK(linear_cuda::complaint("null") == "linear: x, w, y: expected arrays, got null");
  CHECK(linear_cuda::complaint("in place") ==
        "linear: y_stride: expected 0 when y is the residual, which is dense, got 8");
}

TEST_CASE("linear: as PyTorch") {
  for (const char* file : {"linear", "linear_no_bias", "linear_odd"})
    for (const Number number : {Number::f32, Number::bf16}) {
      CAPTURE(file);
      const auto golden = support::golden(file);
      const Case c{.rows = golden.at("x").rows(),
                   .in = golden.at("x").columns(),
                   .out = golden.at("w").rows(),
                   .bias = golden.count("bias") > 0};
      const auto zeros = [](std::vector<std::size_t> shape) { return Tensor<double>(std::move(shape)); };
      const Inputs in{golden.at("x"),         golden.at("w"),  c.bias ? golden.at("bias") : zeros({c.out}),
                      zeros({c.rows, c.out}), golden.at("dy"), zeros({c.rows, c.in}),
                      zeros({c.out, c.in}),   zeros({c.out})};
      const Results ours = linear_cuda::run(number, c, in);
      support::compare_with_golden(number, "y", golden, ours.y);
      support::compare_with_golden(number, "dx", golden, ours.dx);
      support::compare_with_golden(number, "dw", golden, ours.dw);
      if (c.bias) support::compare_with_golden(number, "dbias", golden, ours.dbias);
    }
}

}  // namespace
