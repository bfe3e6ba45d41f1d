// activate and activate_backward against the judge and PyTorch: every activation alone and as a gate, a user's own,
// widths around the accesses and the pieces of rows, strides, in place, unaligned arrays, grids in pieces.
#include "feedforward.hpp"
#include "reference/gradient.hpp"
#include "reference/operation.hpp"
#include "support.hpp"
#include "typeformer/kernel/cuda/tuning.hpp"

namespace {

using feedforward::Case;
using feedforward::Inputs;
using feedforward::Results;
using reference::Activation;
using reference::Tensor;
using support::Number;
using Sizes = std::vector<std::size_t>;

const std::pair<const char*, Activation> activations[] = {
    {"identity", Activation::identity}, {"sigmoid", Activation::sigmoid},
    {"relu", Activation::relu},         {"relu2", Activation::relu2},
    {"gelu_erf", Activation::gelu_erf}, {"gelu_tanh", Activation::gelu_tanh},
    {"silu", Activation::silu},         {"elu", Activation::elu},
    {"selu", Activation::selu},         {"quick_gelu", Activation::quick_gelu}};

bool is_gated(const std::string& kind) { return kind.starts_with("gated_"); }

template <class N>
N value_of(const std::string& name, const N& x, bool gated) {
  for (const auto& [known, activation] : activations)
    if (name == known) return reference::activate(activation, x);
  const N zero = reference::constant<N>(0), one = reference::constant<N>(1);  // softsign
  const N scaled = gated ? reference::constant<N>(1.5) * x : x;
  return scaled / (one + (scaled > zero ? scaled : -scaled));
}

struct Formula {
  std::string kind;
  std::size_t width;

  template <class N>
  Tensor<N> operator()(const std::vector<Tensor<N>>& in) const {
    const bool gated = is_gated(kind);
    const std::string name = gated ? kind.substr(6) : kind;
    Tensor<N> y({in[0].rows(), width});
    for (std::size_t r = 0; r < y.rows(); ++r)
      for (std::size_t i = 0; i < width; ++i) {
        y(r, i) = value_of(name, in[0](r, i), gated);
        if (gated) y(r, i) = y(r, i) * in[0](r, i + width);
      }
    return y;
  }
};

template <class N>
Results judge(const std::string& kind, const Case& c, const Inputs& in) {
  const Formula formula{kind, c.width};
  const std::vector<Tensor<N>> inputs{reference::convert<N>(in.x)};
  const auto gradients = reference::pullback(formula, inputs, reference::convert<N>(in.dy));
  return {reference::convert<double>(formula(inputs)).data, reference::convert<double>(gradients[0]).data};
}

Inputs draw(const std::string& kind, Number number, const Case& c) {
  reference::Random random(c.rows * 1000 + c.width);
  Inputs in{support::draw(number, random, {c.rows, (is_gated(kind) ? 2 : 1) * c.width}, 2),
            support::draw(number, random, {c.rows, c.width})};
  return in;
}

/// The rows of dx; whatever lies between them must be NaN still.
std::vector<double> dense_rows(const std::vector<double>& dx, std::size_t rows, std::size_t width) {
  if (rows == 0) return {};
  const std::size_t stride = dx.size() / rows;
  std::vector<double> dense;
  bool untouched = true;
  for (std::size_t i = 0; i < dx.size(); ++i)
    if (i % stride < width)
      dense.push_back(dx[i]);
    else
      untouched = untouched && std::isnan(dx[i]);
  CHECK(untouched);
  return dense;
}

void check(const std::string& kind, Number number, const Case& c) {
  CAPTURE(kind);
  CAPTURE(c.rows);
  CAPTURE(c.width);
  CAPTURE(c.shift);
  CAPTURE(c.x_stride);
  CAPTURE(c.dx_stride);
  const Inputs in = draw(kind, number, c);
  const Results expected = judge<double>(kind, c, in), naive = judge<float>(kind, c, in);
  const Results ours = feedforward::run(kind, number, c, in);
  support::compare(number, "y", expected.y, naive.y, ours.y, 10);
  support::compare(number, "dx", expected.dx, naive.dx, dense_rows(ours.dx, c.rows, in.x.columns()), 10);
}

/// Rows of four accesses of a lane, 16 bytes or an element wide.
void check_long(const std::string& kind, Number number) {
  check(kind, number, {.rows = 1, .width = number == Number::f32 ? 500u : 1000u});
  check(kind, number, {.rows = 1, .width = 125});
}

TEST_CASE("feedforward: random shapes") {
  reference::Random random(43);  // first: the host's device memory grows, and with it the time of every access
  const int cases = support::random_cases(1000);
  for (int i = 0; i < cases; ++i) {
    const std::size_t which = random.below(std::size(activations) + 1);
    std::string kind = which < std::size(activations) ? activations[which].first : "softsign";
    if (random.below(2)) kind = "gated_" + kind;
    Case c{.rows = random.below(10), .width = 1 + random.below(50)};
    if (random.below(2)) c.width = (c.width + 7) / 8 * 8;
    const std::size_t dense = (is_gated(kind) ? 2 : 1) * c.width;
    if (random.below(2)) c.x_stride = dense + random.below(3) * (random.below(2) ? 8 : 1);
    if (random.below(2)) c.dx_stride = dense + random.below(3) * (random.below(2) ? 8 : 1);
    c.in_place = random.below(3) == 0;
    c.shift = random.below(4) ? 0 : random.below(8);
    c.grid_limit = random.below(4) ? 0 : 1 + static_cast<int>(random.below(4));
    check(kind, random.below(2) ? Number::f32 : Number::bf16, c);
  }
}

TEST_CASE("feedforward: every activation, alone and as a gate, and a user's own") {
  for (const Number number : {Number::f32, Number::bf16}) {
    for (const auto& [name, activation] : activations)
      for (const std::string gate : {"", "gated_"}) {
        check(gate + name, number, {.rows = 3, .width = 40});
        check(gate + name, number, {.rows = 5, .width = 21, .in_place = true});
        check_long(gate + name, number);
      }
    for (const char* own : {"softsign", "gated_softsign"}) {
      check_long(own, number);
      check(own, number, {.rows = 6, .width = 64, .in_place = true});
      check(own, number, {.rows = 2, .width = 13});
    }
  }
}

TEST_CASE("feedforward: widths around accesses and pieces of rows, grids in pieces") {
  for (const std::size_t width : Sizes{1, 7, 8, 127, 128, 129, 255, 256, 257, 511, 512, 513})
    check("gated_silu", Number::f32, {.rows = 2, .width = width});
  for (const std::size_t width : Sizes{1024, 1032, 2048, 2056, 4104, 5000})
    for (const Number number : {Number::f32, Number::bf16}) {
      check("gelu_erf", number, {.rows = 3, .width = width, .shift = width % 3});
      check("gated_gelu_tanh", number, {.rows = 3, .width = width, .in_place = true, .grid_limit = 2});
    }
  check("gated_silu", Number::bf16, {.rows = 67, .width = 24, .grid_limit = 5});
}

TEST_CASE("feedforward: far values") {
  for (const Number number : {Number::f32, Number::bf16})
    for (const std::string kind : {"gelu_erf", "gelu_tanh", "silu", "quick_gelu", "elu", "selu", "sigmoid"}) {
      const Case c{.rows = 1, .width = 8};
      Inputs in = draw(kind, number, c);
      in.x.data = {-1e4, 1e4, -200, 200, -60, 60, 0, -0.};
      CAPTURE(kind);
      const Results expected = judge<double>(kind, c, in), ours = feedforward::run(kind, number, c, in);
      for (std::size_t i = 0; i < 8; ++i) {
        CHECK(ours.y[i] == doctest::Approx(support::rounded(number, expected.y[i])).epsilon(1e-2));
        CHECK(ours.dx[i] == doctest::Approx(support::rounded(number, expected.dx[i])).epsilon(1e-2));
      }
    }
}

TEST_CASE("feedforward: offsets of more than 32 bits") {
  for (const Number number : {Number::f32, Number::bf16}) {
    const Case c{.rows = 3, .width = 64};
    const Inputs in = draw("gated_silu", number, c);
    const Results near = feedforward::run("gated_silu", number, c, in), far = feedforward::run_far(number, c, in);
    CHECK((far.y == near.y && far.dx == near.dx));
  }
}

TEST_CASE("feedforward: as PyTorch") {
  for (const std::string kind : {"gelu_erf", "gelu_tanh", "silu", "relu2", "quick_gelu", "elu", "selu", "gated_silu",
                                 "gated_gelu_erf", "gated_gelu_tanh"})
    for (const Number number : {Number::f32, Number::bf16}) {
      CAPTURE(kind);
      const auto golden = support::golden("activation_" + kind);
      const Inputs in{golden.at("x"), golden.at("dy")};
      const Results ours = feedforward::run(kind, number, {.rows = in.dy.rows(), .width = in.dy.columns()}, in);
      support::compare_with_golden(number, "y", golden, ours.y);
      support::compare_with_golden(number, "dx", golden, ours.dx);
    }
}

TEST_CASE("feedforward: two runs are alike") {
  const Case c{.rows = 9, .width = 1000};
  const Inputs in = draw("gated_gelu_erf", Number::bf16, c);
  const Results one = feedforward::run("gated_gelu_erf", Number::bf16, c, in),
                two = feedforward::run("gated_gelu_erf", Number::bf16, c, in);
  CHECK((one.y == two.y && one.dx == two.dx));
}

TEST_CASE("feedforward: the shapes of blocks") {
  using typeformer::cuda::detail::activation_shape;
  for (int width = 1; width <= 60000; width += width < 3000 ? 1 : 137)
    for (const int elements : {1, 4, 8}) {
      const auto shape = activation_shape(width, elements);
      const int threads = shape.threads * shape.rows;
      CHECK((shape.threads % 32 == 0 && threads <= typeformer::cuda::detail::activation_most_threads));
      CHECK((shape.rows == 1 || shape.pieces == 1));
      CHECK((shape.rows > 1 || shape.pieces * shape.threads * elements >= width));
      CHECK((shape.pieces - 1) * shape.threads * elements < width);
    }
}

TEST_CASE("feedforward: nothing to do, and wrong arguments") {
  feedforward::run_nothing();
  CHECK(feedforward::complaint("rows") == "activate: rows: expected 0 or more, got -1");
  CHECK(feedforward::complaint("backward rows") == "activate_backward: rows: expected 0 or more, got -1");
  CHECK(feedforward::complaint("width") == "activate: width: expected 1 or more, got 0");
  CHECK(feedforward::complaint("stride") == "activate: x_stride: expected 0 or at least 8, got 7");
  CHECK(feedforward::complaint("null") == "activate: x, y: expected arrays, got null");
  CHECK(feedforward::complaint("null backward") == "activate_backward: x, dy, dx: expected arrays, got null");
  CHECK(feedforward::complaint("in place") == "activate_backward: dx_stride: expected x_stride when dx is x, got 16");
}

}  // namespace
