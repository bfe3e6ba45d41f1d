// linear and linear_backward against the judge and PyTorch: strides, residual in place, accumulation, missing parts.
#include "linear.hpp"
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
  const auto as = [](const Tensor<double>& tensor) { return reference::convert<N>(tensor); };
  const auto wide = [](const Tensor<N>& tensor) { return reference::convert<double>(tensor).data; };
  const auto formula = [&](const auto& inputs) {
    return reference::linear(inputs[0], inputs[1], c.bias ? &inputs[2] : nullptr);
  };
  const std::vector<Tensor<N>> inputs{as(in.x), as(in.w), as(in.bias)};
  Tensor<N> y = formula(inputs);
  if (c.residual) reference::accumulate(y, as(in.residual));
  auto gradients = reference::pullback(formula, inputs, as(in.dy));
  if (c.accumulate) reference::accumulate(gradients[0], as(in.dx_before));
  reference::accumulate(gradients[1], as(in.dw_before));
  reference::accumulate(gradients[2], as(in.dbias_before));
  return {wide(y), wide(gradients[0]), wide(gradients[1]), wide(gradients[2])};
}

Inputs draw(Number number, const Case& c) {
  reference::Random random(c.rows * 100 + c.in * 10 + c.out);
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

void check(const Case& c) {
  for (const Number number : {Number::f32, Number::bf16}) {
    CAPTURE(c.rows);
    CAPTURE(c.in);
    CAPTURE(c.out);
    const Inputs in = draw(number, c);
    const Results expected = judge<double>(c, in), naive = judge<float>(c, in), ours = linear_cuda::run(number, c, in);
    support::compare(number, "y", expected.y, naive.y, ours.y, c.in + 2);
    support::compare(number, "dx", expected.dx, naive.dx, ours.dx, c.out + 1);
    support::compare(Number::f32, "dw", expected.dw, naive.dw, ours.dw, c.rows + 1);
    support::compare(Number::f32, "dbias", expected.dbias, naive.dbias, ours.dbias, c.rows + 1);
  }
}

TEST_CASE("linear") {
  check({.rows = 1, .in = 1, .out = 1});
  check({.rows = 5, .in = 17, .out = 9, .bias = false});
  check({.rows = 33, .in = 24, .out = 40, .residual = true});
  check({.rows = 7, .in = 16, .out = 8, .residual = true, .in_place = true, .accumulate = true});
  check({.rows = 6, .in = 10, .out = 12, .x_stride = 13, .y_stride = 20, .residual = true, .accumulate = true});
  check({.rows = 9, .in = 11, .out = 130, .shift = 1});
  check({.rows = 150, .in = 8, .out = 5, .bias = false, .residual = true});
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
