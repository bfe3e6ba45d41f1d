// test: sanitize
// activate and its backward alone, against the judge: plain and gated, strides, in place.
#include <string>

#include "kernel/support.hpp"

namespace {

using namespace kernel_test;

/// f(up), or f(gate) * up with x = gate | up.
template <class T>
Numbers<T> judged(reference::Activation f, bool gated, std::size_t width, const Numbers<T>& x) {
  Numbers<T> y({x.rows(), width});
  for (std::size_t r = 0; r < x.rows(); ++r)
    for (std::size_t i = 0; i < width; ++i) {
      y(r, i) = reference::activate(f, x(r, i));
      if (gated) y(r, i) = y(r, i) * x(r, i + width);
    }
  return y;
}

template <class Activation>
void check_one(cpu::Device& on, reference::Activation f, std::size_t rows, std::size_t width, std::size_t gap,
               double size) {
  constexpr bool gated = Activation::gated;
  const std::size_t dense_width = gated ? 2 * width : width, stride = dense_width + gap;
  Random random(rows * 100 + width);
  const auto x = draw(random, rows, dense_width, size), dy = draw(random, rows, width);
  const std::string name =
      "[" + std::to_string(rows) + ", " + std::to_string(width) + "] of size " + std::to_string(size);
  const auto in = strided(x, stride), dout = floats(dy);
  std::vector<float> y(rows * width, unset), dx(rows * stride, unset);
  activate(on, Activation{},
           ActivateArgs<float>{.y = y.data(),
                               .x = in.data(),
                               .rows = static_cast<std::int64_t>(rows),
                               .width = static_cast<int>(width),
                               .x_stride = gap ? static_cast<std::int64_t>(stride) : 0});
  const double magnitude = gated ? largest(x) * largest(x) : largest(x);
  check(name + " y", judged(f, gated, width, x), judged(f, gated, width, reference::convert<float>(x)), y, 4,
        magnitude);
  ActivateBackwardArgs<float> args{.dx = dx.data(),
                                   .dy = dout.data(),
                                   .x = in.data(),
                                   .rows = static_cast<std::int64_t>(rows),
                                   .width = static_cast<int>(width),
                                   .x_stride = static_cast<std::int64_t>(stride),
                                   .dx_stride = static_cast<std::int64_t>(stride)};
  activate_backward(on, Activation{}, args);
  const auto pull = [&]<class T>(T) {
    return reference::pullback<T>([&](const auto& v) { return judged(f, gated, width, v[0]); },
                                  {reference::convert<T>(x)}, reference::convert<T>(dy))[0];
  };
  const Numbers<double> judge = pull(double{});
  check(name + " dx", judge, pull(float{}), dense(dx, rows, dense_width, stride), 4, largest(dy) * (1 + magnitude));
  CHECK(gaps_untouched(dx, dense_width, stride));
  std::vector<float> in_place = in;
  args.dx = in_place.data();
  args.x = in_place.data();
  activate_backward(on, Activation{}, args);
  CHECK_MESSAGE(dense(in_place, rows, dense_width, stride) == dense(dx, rows, dense_width, stride), name, ": dx = x");
}

template <class Activation>
void check_all(reference::Activation f) {
  cpu::Device on(2);
  for (const std::size_t width : widths)
    for (const std::size_t rows : {0u, 1u, 5u}) check_one<Activation>(on, f, rows, width, width % 3, 1);
  for (const double size : {1e-3, 10., 60.}) check_one<Activation>(on, f, 7, 45, 0, size);
}
template <class Plain>
void check_both(reference::Activation f) {
  check_all<Plain>(f);
  check_all<Gated<Plain>>(f);
}

}  // namespace

TEST_CASE("ReLU") { check_both<ReLU>(reference::Activation::relu); }
TEST_CASE("squared ReLU") { check_both<SquaredReLU>(reference::Activation::relu2); }
TEST_CASE("GELU") { check_both<GELU>(reference::Activation::gelu_erf); }
TEST_CASE("GELU, tanh") { check_both<GELUTanh>(reference::Activation::gelu_tanh); }
TEST_CASE("SiLU") { check_both<SiLU>(reference::Activation::silu); }
TEST_CASE("quick GELU") { check_both<QuickGELU>(reference::Activation::quick_gelu); }
TEST_CASE("sigmoid") { check_both<Sigmoid>(reference::Activation::sigmoid); }
TEST_CASE("bilinear") { check_both<Identity>(reference::Activation::identity); }
TEST_CASE("ELU") { check_both<ELU>(reference::Activation::elu); }
TEST_CASE("SELU") { check_both<SELU>(reference::Activation::selu); }
