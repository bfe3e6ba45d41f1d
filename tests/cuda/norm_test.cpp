// norm_rows and norm_rows_backward against the judge and PyTorch: every kind of norm, a user's own, widths around the
// vector accesses and the two block shapes, unaligned arrays, in place, with and without residual, grids in pieces; and
// a thousand shapes.
#include "norm.hpp"

#include <algorithm>

#include "reference/gradient.hpp"
#include "reference/operation.hpp"
#include "support.hpp"

namespace {

using norms::Case;
using norms::Inputs;
using norms::Results;
using reference::NormKind;
using reference::NormWeight;
using reference::Tensor;
using support::Number;

constexpr double eps = double{1e-2f};

/// The formula of a norm on any number type; inputs: x, gain, bias.
struct Formula {
  reference::Norm norm;
  double tanh_slope = 0;  // above 0: the test's own policy

  template <class N>
  Tensor<N> operator()(const std::vector<Tensor<N>>& in) const {
    using std::tanh;
    if (tanh_slope == 0)
      return reference::norm_rows(norm, in[0], norm.weight == NormWeight::none ? nullptr : &in[1],
                                  norm.bias ? &in[2] : nullptr);
    Tensor<N> y(in[0].shape);
    for (std::size_t r = 0; r < y.rows(); ++r)
      for (std::size_t i = 0; i < y.columns(); ++i)
        y(r, i) = tanh(reference::constant<N>(tanh_slope) * in[0](r, i)) * in[1].data[i] + in[2].data[i];
    return y;
  }
};

Formula formula_of(const std::string& kind) {
  if (kind == "rms") return {{NormKind::rms, NormWeight::weight, false, eps}};
  if (kind == "rms_one_plus") return {{NormKind::rms, NormWeight::one_plus, false, eps}};
  if (kind == "rms_plain") return {{NormKind::rms, NormWeight::none, false, eps}};
  if (kind == "layer") return {{NormKind::layer, NormWeight::weight, true, eps}};
  if (kind == "layer_plain") return {{NormKind::layer, NormWeight::none, false, eps}};
  if (kind == "none") return {{NormKind::identity, NormWeight::none, false, 0}};
  return {{NormKind::identity, NormWeight::weight, true, 0}, .5};
}

template <class N>
Results judge(const Formula& formula, const Case& c, const Inputs& in) {
  const auto as = [](const Tensor<double>& tensor) { return reference::convert<N>(tensor); };
  const auto wide = [](const Tensor<N>& tensor) { return reference::convert<double>(tensor).data; };
  const std::vector<Tensor<N>> inputs{as(in.x), as(in.gain), as(in.bias)};
  Tensor<N> y = formula(inputs);
  if (c.residual) reference::accumulate(y, as(in.residual));
  auto gradients = reference::pullback(formula, inputs, as(in.dy));
  if (c.accumulate) reference::accumulate(gradients[0], as(in.dx_before));
  const auto sum = [&](const Tensor<N>& gradient) {
    Tensor<N> total = as(in.gradient_before);
    if (c.gradients) reference::accumulate(total, gradient);
    return wide(total);
  };
  return {wide(y), {}, wide(gradients[0]), sum(gradients[1]), sum(gradients[2])};
}

Inputs draw(Number number, const Case& c, std::uint64_t seed) {
  reference::Random random(seed + c.rows * 1000 + c.width);
  const std::vector<std::size_t> shape{c.rows, c.width};
  Inputs in;
  in.x = support::draw(number, random, shape, 1, c.mean);
  in.residual = support::draw(number, random, shape);
  in.dy = support::draw(number, random, shape);
  in.dx_before = support::draw(number, random, shape);
  in.gain = support::draw(Number::f32, random, {c.width}, .3, 1);
  in.bias = support::draw(Number::f32, random, {c.width}, .3);
  in.gradient_before = support::draw(Number::f32, random, {c.width});
  return in;
}

/// The size of dx's terms, which cancel where a row has few elements: 2 |dy| over the row's deviation.
double largest_term(const Formula& formula, const Inputs& in) {
  double largest = 0;
  for (std::size_t r = 0; r < in.x.rows(); ++r) {
    double mean = 0, squares = 0, dy = 0;
    const auto n = static_cast<double>(in.x.columns());
    for (std::size_t i = 0; i < in.x.columns(); ++i) mean += formula.norm.kind == NormKind::layer ? in.x(r, i) / n : 0;
    for (std::size_t i = 0; i < in.x.columns(); ++i) squares += (in.x(r, i) - mean) * (in.x(r, i) - mean) / n;
    for (std::size_t i = 0; i < in.x.columns(); ++i) dy = std::fmax(dy, std::fabs(in.dy(r, i)));
    largest = std::fmax(largest, 2 * dy / (formula.norm.kind == NormKind::identity ? 1 : std::sqrt(squares + eps)));
  }
  return largest;
}

/// The size of what a centred norm subtracts, of a deviation of 1: of x far from 0 the mean has an error of its size,
/// the same in the whole row.
double largest_subtracted(const Formula& formula, const Inputs& in) {
  double result = 0;
  if (formula.norm.kind != NormKind::layer) return result;
  for (std::size_t r = 0; r < in.x.rows(); ++r) {
    double mean = 0, squares = 0;
    const auto n = static_cast<double>(in.x.columns());
    for (std::size_t i = 0; i < in.x.columns(); ++i) mean += in.x(r, i) / n;
    for (std::size_t i = 0; i < in.x.columns(); ++i) squares += (in.x(r, i) - mean) * (in.x(r, i) - mean) / n;
    result = std::fmax(result, std::fabs(mean) / std::sqrt(squares + eps));
  }
  return result;
}

double largest(const std::vector<double>& numbers) {
  double result = 0;
  for (const double number : numbers) result = std::fmax(result, std::fabs(number));
  return result;
}

/// The largest of sums whose terms have the size `term`: where they cancel, the sum does not tell.
double size_of(const std::vector<double>& sums, double term) { return std::fmax(largest(sums), term); }

void check(const std::string& kind, Number number, const Case& c, std::uint64_t seed = 0) {
  CAPTURE(kind);
  CAPTURE(c.rows);
  CAPTURE(c.width);
  CAPTURE(c.shift);
  CAPTURE(c.mean);
  CAPTURE(number == Number::bf16);
  const Formula formula = formula_of(kind);
  const Inputs in = draw(number, c, seed);
  const Results expected = judge<double>(formula, c, in), naive = judge<float>(formula, c, in);
  const Results ours = norms::run(kind, number, c, in);
  const double residual = c.residual ? largest(in.residual.data) : 0, subtracted = largest_subtracted(formula, in);
  const double y_term = number == Number::f32 ? std::fmax(residual, subtracted) : residual;  // bf16: its rounding alone
  support::compare(number, "y", expected.y, naive.y, ours.y, c.width + 5, size_of(expected.y, y_term));
  CHECK(ours.y_in_place == ours.y);
  support::compare(number, "dx", expected.dx, naive.dx, ours.dx, c.width + 5, largest_term(formula, in));
  const double before = largest(in.gradient_before.data), dy = largest(in.dy.data), term = std::fmax(before, dy);
  support::compare(Number::f32, "dgain", expected.dgain, naive.dgain, ours.dgain, c.rows + 5,
                   size_of(expected.dgain, std::fmax(term, dy * subtracted)));
  support::compare(Number::f32, "dbias", expected.dbias, naive.dbias, ours.dbias, c.rows + 1,
                   size_of(expected.dbias, term));
  if (seed % 8 != 0) return;
  const Results again = norms::run(kind, number, c, in);
  CHECK((again.dgain == ours.dgain && again.dbias == ours.dbias && again.dx == ours.dx));
}

/// Widths around accesses of 4 and 8 elements and around the change from a warp to a block per row (128 accesses).
void check_shapes(const std::string& kind) {
  for (const Number number : {Number::f32, Number::bf16}) {
    check(kind, number, {.rows = 1, .width = 1});
    check(kind, number, {.rows = 3, .width = 7, .residual = true});
    check(kind, number, {.rows = 5, .width = 32, .in_place = true});
    check(kind, number, {.rows = 4, .width = 40, .shift = 1, .accumulate = true});
    check(kind, number, {.rows = 9, .width = 136, .mean = 20, .residual = true, .in_place = true});
    check(kind, number, {.rows = 2, .width = 1033, .accumulate = true});
    check(kind, number, {.rows = 3, .width = 1048, .in_place = true, .accumulate = true});
    for (const bool more : {false, true})  // four accesses of a thread
      check(kind, number, {.rows = 1, .width = 2051, .residual = more, .accumulate = more});
    for (const std::size_t elements : {1u, 4u, 8u})  // blocks of five warps
      check(kind, number, {.rows = 1, .width = 257 * elements});
  }
}

TEST_CASE("norm: rms") {
  for (const char* kind : {"rms", "rms_one_plus", "rms_plain"}) check_shapes(kind);
}
TEST_CASE("norm: layer") {
  for (const char* kind : {"layer", "layer_plain"}) check_shapes(kind);
}
TEST_CASE("norm: none, and a user's own") {
  for (const char* kind : {"none", "tanh"}) check_shapes(kind);
}

TEST_CASE("norm: many rows and wide rows, grids in pieces") {
  check("layer", Number::f32, {.rows = 70, .width = 33});
  check("layer", Number::bf16, {.rows = 1, .width = 9000});
  check("layer", Number::f32, {.rows = 70, .width = 133, .grid_limit = 3});
  check("rms", Number::bf16, {.rows = 5, .width = 1040, .grid_limit = 3});
}

TEST_CASE("norm: wide rows without vectors, blocks of three warps, many slabs of rows") {
  check("layer", Number::f32, {.rows = 2, .width = 2300, .shift = 1});
  check("rms", Number::bf16, {.rows = 2, .width = 4099, .residual = true});
  for (const std::size_t elements : {1u, 4u, 8u})  // 129 to 192 accesses
    for (const Number number : {Number::f32, Number::bf16})
      check("layer", number, {.rows = 3, .width = 161 * elements, .residual = true, .accumulate = true});
  check("layer", Number::bf16, {.rows = 70, .width = 24});
  check("layer", Number::bf16, {.rows = 600, .width = 3});  // 19 slabs
  check("layer", Number::f32, {.rows = 555, .width = 8});
}

TEST_CASE("norm: a thousand shapes") {
  const char* kinds[] = {"layer", "rms", "tanh", "rms_one_plus", "rms_plain", "layer_plain", "none"};
  const int cases = support::random_cases(1000);
  for (int i = 0; i < cases; ++i) {
    reference::Random random(static_cast<std::uint64_t>(i) * 7919 + 2);
    Case c;
    const std::size_t rows[] = {random.below(4), 1 + random.below(9), 32 + random.below(3), random.below(140)};
    c.rows = rows[random.below(16) ? random.below(2) : 2 + random.below(2)];
    const std::size_t widths[] = {1 + random.below(20), 8 * (1 + random.below(30)), 1 + random.below(400),
                                  4 * (126 + random.below(5)), 512 + random.below(700)};
    c.width = widths[c.rows < 10 ? random.below(16) ? random.below(3) : 3 + random.below(2) : random.below(2)];
    c.mean = random.below(4) ? 0 : 20;
    c.shift = random.below(3) == 0 ? random.below(5) : 0;
    c.residual = random.below(2) == 0;
    c.in_place = random.below(2) == 0;
    c.accumulate = random.below(3) == 0;
    c.gradients = random.below(5) != 0;
    c.grid_limit = random.below(4) == 0 ? 1 + static_cast<int>(random.below(5)) : 0;
    check(kinds[random.below(7)], random.below(2) ? Number::f32 : Number::bf16, c, static_cast<std::uint64_t>(i));
  }
}

TEST_CASE("norm: as PyTorch") {
  const char* files[][2] = {{"norm_rms", "rms"}, {"norm_rms_one", "rms_one_plus"}, {"norm_layer", "layer"}};
  for (const auto& [file, kind] : files)
    for (const Number number : {Number::f32, Number::bf16}) {
      CAPTURE(file);
      const auto golden = support::golden(file);
      REQUIRE(golden.at("eps").data[0] == eps);
      const Tensor<double>& x = golden.at("x");
      const Tensor<double> zero_rows(x.shape), zeros({x.columns()});
      const Inputs in{
          x,         zero_rows, golden.at("weight"), golden.count("bias") ? golden.at("bias") : zeros, golden.at("dy"),
          zero_rows, zeros};
      const Results ours = norms::run(kind, number, {.rows = x.rows(), .width = x.columns()}, in);
      support::compare_with_golden(number, "y", golden, ours.y);
      support::compare_with_golden(number, "dx", golden, ours.dx);
      support::compare_with_golden(number, "dweight", golden, ours.dgain);
      if (golden.count("dbias")) support::compare_with_golden(number, "dbias", golden, ours.dbias);
    }
}

TEST_CASE("norm: nothing to do, and wrong arguments") {
  norms::run_nothing();
  CHECK(norms::complaint_without("arrays") == "norm_rows: x, y: expected arrays, got null");
  CHECK(norms::complaint_without("gain") == "norm_rows: gain: expected an array, the norm has a gain, got null");
  CHECK(norms::complaint_without("bias") == "norm_rows: bias: expected an array, the norm has a bias, got null");
  CHECK(norms::complaint_about_rows() == "norm_rows: rows: expected 0 or more, got -1");
  CHECK(norms::complaint_about_width(0) == "norm_rows_backward: width: expected 1 or more, got 0");
  CHECK(norms::complaint_about_width(1 << 29) == "none");
  CHECK(norms::complaint_about_width((1 << 29) + 1) ==
        "norm_rows_backward: width: expected at most 536870912, got 536870913");
  CHECK(norms::complaint_without("backward arrays") == "norm_rows_backward: x, dy, dx: expected arrays, got null");
  CHECK(norms::complaint_without("scale") == "norm_rows_backward: scale: expected the forward's scales, got null");
  CHECK(norms::complaint_without("mean") ==
        "norm_rows_backward: mean: expected the forward's means, the norm is centred, got null");
  CHECK(norms::complaint_without("backward gain") ==
        "norm_rows_backward: gain: expected an array, the norm has a gain, got null");
}

}  // namespace
