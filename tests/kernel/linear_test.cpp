// test: sanitize
// linear and its backward alone, against the judge: sizes, strides, residual, accumulation, weights of every type.
#include <string>

#include "kernel/support.hpp"

namespace {

using namespace kernel_test;

/// One product, its weights exact in W.
template <class W>
struct Product {
  std::size_t rows, in, out, x_stride, y_stride;
  Numbers<double> x, w, bias, residual, dy;
  std::vector<W> stored;

  Product(std::size_t rows_, std::size_t in_, std::size_t out_, std::size_t gap, double size = 1)
      : rows(rows_), in(in_), out(out_), x_stride(in_ + gap), y_stride(out_ + gap) {
    Random random(rows * 10000 + in * 100 + out);
    x = draw(random, rows, in, size);
    w = draw(random, out, in, size);
    bias = draw(random, 1, out, size);
    residual = draw(random, rows, out, size);
    dy = draw(random, rows, out, size);
    for (double& number : w.data) {
      stored.push_back(from_float<W>(static_cast<float>(number)));
      number = double{to_float(stored.back())};
    }
  }
  std::string name() const {
    return "[" + std::to_string(rows) + ", " + std::to_string(in) + "] x [" + std::to_string(out) + "]";
  }
  /// What a sum of the product is at most, where nothing cancels.
  double magnitude(std::size_t terms) const {
    return largest(x) * largest(w) * std::sqrt(static_cast<double>(std::max<std::size_t>(terms, 1)));
  }
};

template <class T, class W>
Numbers<T> judged(const Product<W>& p, bool bias, bool residual) {
  const auto b = reference::convert<T>(p.bias);
  const auto y = reference::linear(reference::convert<T>(p.x), reference::convert<T>(p.w), bias ? &b : nullptr);
  return residual ? sum(y, reference::convert<T>(p.residual)) : y;
}
template <class T, class W>
std::vector<Numbers<T>> judged_backward(const Product<W>& p) {
  return reference::pullback<T>([](const auto& v) { return reference::linear(v[0], v[1], &v[2]); },
                                {reference::convert<T>(p.x), reference::convert<T>(p.w), reference::convert<T>(p.bias)},
                                reference::convert<T>(p.dy));
}

template <class W>
void check_forward(cpu::Device& on, const Product<W>& p) {
  const auto x = strided(p.x, p.x_stride), bias = floats(p.bias), residual = floats(p.residual);
  LinearArgs<float, W> args{.x = x.data(),
                            .w = p.stored.data(),
                            .rows = static_cast<std::int64_t>(p.rows),
                            .in = static_cast<int>(p.in),
                            .out = static_cast<int>(p.out),
                            .x_stride = static_cast<std::int64_t>(p.x_stride),
                            .y_stride = static_cast<std::int64_t>(p.y_stride)};
  for (const bool with_bias : {false, true})
    for (const bool with_residual : {false, true}) {
      std::vector<float> y(p.rows * p.y_stride, unset);
      args.y = y.data();
      args.bias = with_bias ? bias.data() : nullptr;
      args.residual = with_residual ? residual.data() : nullptr;
      linear(on, args);
      check(p.name(), judged<double>(p, with_bias, with_residual), judged<float>(p, with_bias, with_residual),
            dense(y, p.rows, p.out, p.y_stride), p.in, p.magnitude(p.in));
      CHECK(gaps_untouched(y, p.out, p.y_stride));
    }
  if (p.y_stride != p.out) return;
  std::vector<float> in_place = residual, apart(residual.size());
  args.bias = bias.data();
  args.y = apart.data();
  args.residual = residual.data();
  linear(on, args);
  args.residual = args.y = in_place.data();
  linear(on, args);
  CHECK_MESSAGE(in_place == apart, p.name(), ": y = residual");
}

template <class W>
void check_backward(cpu::Device& on, const Product<W>& p) {
  const auto judge = judged_backward<double>(p);
  const auto naive = judged_backward<float>(p);
  const auto x = strided(p.x, p.x_stride), dy = strided(p.dy, p.y_stride);
  std::vector<float> dx(p.rows * p.in, unset), dw(p.out * p.in), dbias(p.out);
  LinearBackwardArgs<float, W> args{.dx = dx.data(),
                                    .dw = dw.data(),
                                    .dbias = dbias.data(),
                                    .dy = dy.data(),
                                    .x = x.data(),
                                    .w = p.stored.data(),
                                    .rows = static_cast<std::int64_t>(p.rows),
                                    .in = static_cast<int>(p.in),
                                    .out = static_cast<int>(p.out),
                                    .x_stride = static_cast<std::int64_t>(p.x_stride),
                                    .dy_stride = static_cast<std::int64_t>(p.y_stride)};
  linear_backward(on, args);
  check(p.name() + " dx", judge[0], naive[0], dx, p.out, p.magnitude(p.out));
  check(p.name() + " dw", judge[1], naive[1], dw, p.rows, p.magnitude(p.rows));
  check(p.name() + " dbias", judge[2], naive[2], dbias, p.rows,
        largest(p.dy) * std::sqrt(static_cast<double>(std::max<std::size_t>(p.rows, 1))));

  std::vector<float> only(p.out, 1.f);  // one output alone, and added to what is there
  args.dx = nullptr;
  args.dw = nullptr;
  args.dbias = only.data();
  linear_backward(on, args);
  Numbers<double> one({1, p.out});
  std::fill(one.data.begin(), one.data.end(), 1.);
  check(p.name() + " dbias alone", sum(one, judge[2]), sum(reference::convert<float>(one), naive[2]), only, p.rows + 1,
        1 + largest(p.dy) * std::sqrt(static_cast<double>(p.rows + 1)));
  args.dbias = nullptr;
  std::vector<float> added = floats(p.x);
  args.dx = added.data();
  args.accumulate = true;
  linear_backward(on, args);
  check(p.name() + " dx +=", sum(p.x, judge[0]), sum(reference::convert<float>(p.x), naive[0]), added, p.out + 1,
        p.magnitude(p.out + 1) + largest(p.x));
}

/// No rows: nothing is written but dx of none, nothing added.
template <class W>
void check_empty(cpu::Device& on) {
  const Product<W> p(0, 5, 3, 0);
  std::vector<float> y(3, 7.f), dw(15, 7.f), dbias(3, 7.f);
  linear(on, LinearArgs<float, W>{.y = y.data(), .w = p.stored.data(), .rows = 0, .in = 5, .out = 3});
  linear_backward(
      on,
      LinearBackwardArgs<float, W>{
          .dx = y.data(), .dw = dw.data(), .dbias = dbias.data(), .w = p.stored.data(), .rows = 0, .in = 5, .out = 3});
  CHECK(y == std::vector<float>(3, 7.f));
  CHECK(dw == std::vector<float>(15, 7.f));
  CHECK(dbias == std::vector<float>(3, 7.f));
}

template <class W>
void check_sizes() {
  cpu::Device on(2);
  check_empty<W>(on);
  for (const std::size_t in : widths)
    for (const auto& [rows, out] : {std::pair<std::size_t, std::size_t>{1, 1}, {3, 17}, {4, 16}, {9, 33}}) {
      const Product<W> p(rows, in, out, in % 3);
      check_forward(on, p);
      check_backward(on, p);
    }
}

}  // namespace

TEST_CASE("weights in float") { check_sizes<float>(); }
TEST_CASE("weights in bf16") { check_sizes<bf16>(); }
TEST_CASE("weights in f16") { check_sizes<f16>(); }

TEST_CASE("large and small magnitudes") {
  cpu::Device on(2);
  for (const double size : {1e12, 1e-12}) {
    const Product<float> p(7, 53, 19, 0, size);
    check_forward(on, p);
    check_backward(on, p);
  }
}

TEST_CASE("a row's result does not depend on the rows beside it, nor on threads") {
  const Product<float> p(11, 45, 29, 0);
  const auto x = floats(p.x), w = floats(p.w);
  std::vector<float> all(11 * 29);
  for (const int threads : {1, 3}) {
    cpu::Device on(threads);
    linear(on,
           LinearArgs<float, float>{.y = all.data(), .x = x.data(), .w = w.data(), .rows = 11, .in = 45, .out = 29});
    for (std::size_t row = 0; row < 11; ++row) {
      std::vector<float> alone(29);
      linear(on, LinearArgs<float, float>{
                     .y = alone.data(), .x = x.data() + row * 45, .w = w.data(), .rows = 1, .in = 45, .out = 29});
      CHECK(std::equal(alone.begin(), alone.end(), all.begin() + static_cast<std::ptrdiff_t>(row * 29)));
    }
  }
}
