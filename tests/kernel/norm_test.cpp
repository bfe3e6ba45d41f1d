// test: sanitize
// norm_rows and its backward alone, against the judge: every norm, width and alias.
#include <string>

#include "kernel/support.hpp"

namespace {

using namespace kernel_test;

/// The judge's description of a norm policy.
template <auto Norm>
reference::Norm described() {
  reference::Norm norm;
  using Policy = policy_t<Norm>;
  norm.kind = std::is_same_v<Policy, RMSNorm>     ? reference::NormKind::rms
              : std::is_same_v<Policy, LayerNorm> ? reference::NormKind::layer
                                                  : reference::NormKind::identity;
  norm.weight = Norm.gain == Gain::none     ? reference::NormWeight::none
                : Norm.gain == Gain::weight ? reference::NormWeight::weight
                                            : reference::NormWeight::one_plus;
  norm.bias = Norm.bias;
  if constexpr (requires { Norm.eps; }) norm.eps = double{Norm.eps};
  return norm;
}

/// x, dy [rows, width], gain and bias [width] of deviation and mean.
struct Inputs {
  std::size_t rows, width;
  Numbers<double> x, dy, gain, bias, residual;
  Inputs(std::size_t rows_, std::size_t width_, double deviation, double mean, std::uint64_t seed)
      : rows(rows_), width(width_) {
    Random random(seed);
    x = draw(random, rows, width, deviation, mean);
    dy = draw(random, rows, width);
    gain = draw(random, 1, width, .4, 1);
    bias = draw(random, 1, width, .5);
    residual = draw(random, rows, width);
  }
};

template <auto Norm, class T>
Numbers<T> judged(const Inputs& in) {
  const auto norm = described<Norm>();
  const auto gain = reference::convert<T>(in.gain), bias = reference::convert<T>(in.bias);
  return reference::norm_rows(norm, reference::convert<T>(in.x),
                              norm.weight == reference::NormWeight::none ? nullptr : &gain,
                              norm.bias ? &bias : nullptr);
}
/// Gradients by x, gain and bias.
template <auto Norm, class T>
std::vector<Numbers<T>> judged_backward(const Inputs& in) {
  const auto norm = described<Norm>();
  return reference::pullback<T>(
      [&](const auto& v) {
        return reference::norm_rows(norm, v[0], norm.weight == reference::NormWeight::none ? nullptr : &v[1],
                                    norm.bias ? &v[2] : nullptr);
      },
      {reference::convert<T>(in.x), reference::convert<T>(in.gain), reference::convert<T>(in.bias)},
      reference::convert<T>(in.dy));
}

/// The factor by which a row is divided at least, and the size of x against it: what the terms of y and dx are made of.
template <auto Norm>
double scale_of(const Inputs& in) {
  const auto norm = described<Norm>();
  if (norm.kind == reference::NormKind::identity) return 1;
  double largest_scale = 0;
  for (std::size_t r = 0; r < in.rows; ++r) {
    double mean = 0, squares = 0;
    const auto n = static_cast<double>(in.width);
    if (norm.kind == reference::NormKind::layer)
      for (std::size_t i = 0; i < in.width; ++i) mean += in.x(r, i) / n;
    for (std::size_t i = 0; i < in.width; ++i) squares += (in.x(r, i) - mean) * (in.x(r, i) - mean) / n;
    largest_scale = std::max(largest_scale, 1 / std::sqrt(squares + norm.eps));
  }
  return largest_scale;
}

template <auto Norm>
void check_forward(cpu::Device& on, const Inputs& in, const std::string& name) {
  const auto judge = judged<Norm, double>(in);
  const auto naive = judged<Norm, float>(in);
  const auto x = floats(in.x), gain = floats(in.gain), bias = floats(in.bias), residual = floats(in.residual);
  NormArgs<float> args{.x = x.data(),
                       .gain = gain.data(),
                       .bias = bias.data(),
                       .rows = static_cast<std::int64_t>(in.rows),
                       .width = static_cast<int>(in.width)};
  std::vector<float> y(x.size(), unset);
  args.y = y.data();
  norm_rows(on, norm_form(fixed<Norm>), args);
  const double magnitude = largest(in.x) * scale_of<Norm>(in) * (1 + largest(in.gain));
  check(name, judge, naive, y, in.width, magnitude);

  std::vector<float> in_place = x, added = residual;
  args.x = args.y = in_place.data();
  norm_rows(on, norm_form(fixed<Norm>), args);
  CHECK_MESSAGE(in_place == y, name, ": y = x");
  args.x = x.data();
  args.y = added.data();
  args.residual = added.data();
  norm_rows(on, norm_form(fixed<Norm>), args);
  std::vector<float> expected;
  for (std::size_t i = 0; i < y.size(); ++i) expected.push_back(residual[i] + y[i]);
  CHECK_MESSAGE(added == expected, name, ": y = residual");
}

template <auto Norm>
void check_backward(cpu::Device& on, const Inputs& in, const std::string& name) {
  const auto judge = judged_backward<Norm, double>(in);
  const auto naive = judged_backward<Norm, float>(in);
  const auto x = floats(in.x), gain = floats(in.gain), bias = floats(in.bias), dy = floats(in.dy);
  std::vector<float> y(x.size()), mean(in.rows, unset), scale(in.rows, unset);
  const auto rows = static_cast<std::int64_t>(in.rows);
  const int width = static_cast<int>(in.width);
  const auto form = norm_form(fixed<Norm>);
  norm_rows(on, form,
            NormArgs<float>{.y = y.data(),
                            .x = x.data(),
                            .gain = gain.data(),
                            .bias = bias.data(),
                            .mean = mean.data(),
                            .scale = scale.data(),
                            .rows = rows,
                            .width = width});
  std::vector<float> dx(x.size(), unset), dgain(in.width), dbias(in.width);
  NormBackwardArgs<float> args{.dx = dx.data(),
                               .dy = dy.data(),
                               .x = x.data(),
                               .gain = gain.data(),
                               .mean = mean.data(),
                               .scale = scale.data(),
                               .dgain = dgain.data(),
                               .dbias = dbias.data(),
                               .rows = rows,
                               .width = width};
  norm_rows_backward(on, form, args);
  const double size = scale_of<Norm>(in), term = largest(in.dy) * (1 + largest(in.gain));
  check(name + " dx", judge[0], naive[0], dx, in.width,
        term * size * (1 + size * size * largest(in.x) * largest(in.x)));
  const double of_rows = largest(in.dy) * std::sqrt(static_cast<double>(std::max<std::size_t>(in.rows, 1)));
  if (Norm.gain != Gain::none)
    check(name + " dgain", judge[1], naive[1], dgain, in.rows, of_rows * size * largest(in.x));
  if (Norm.bias) check(name + " dbias", judge[2], naive[2], dbias, in.rows, of_rows);

  std::vector<float> in_place = dy, added(x.size(), 2.f), more_gain(in.width, 1.f), more_bias(in.width, 1.f);
  args.dx = in_place.data();
  args.dy = in_place.data();
  args.dgain = more_gain.data();
  args.dbias = more_bias.data();
  norm_rows_backward(on, form, args);
  CHECK_MESSAGE(in_place == dx, name, ": dx = dy");
  Numbers<double> ones({1, in.width}, std::vector<double>(in.width, 1.));
  const auto naive_ones = reference::convert<float>(ones);
  if (Norm.gain != Gain::none)
    check(name + " dgain +=", sum(ones, judge[1]), sum(naive_ones, naive[1]), more_gain, in.rows + 1,
          1 + of_rows * size * largest(in.x));
  if (Norm.bias)
    check(name + " dbias +=", sum(ones, judge[2]), sum(naive_ones, naive[2]), more_bias, in.rows + 1, 1 + of_rows);
  args.dx = added.data();
  args.dy = dy.data();
  args.dgain = args.dbias = nullptr;  // not wanted
  args.accumulate = true;
  norm_rows_backward(on, form, args);
  bool sums = true;
  for (std::size_t i = 0; i < dx.size(); ++i) sums = sums && added[i] == 2.f + dx[i];
  CHECK_MESSAGE(sums, name, ": dx accumulates");
}

template <auto Norm>
void check_norm(const std::string& name) {
  cpu::Device on(2);
  for (const std::size_t width : widths)
    for (const std::size_t rows : {0u, 1u, 5u}) {
      const Inputs in(rows, width, 1, 0, width * 10 + rows);
      const std::string at = name + " [" + std::to_string(rows) + ", " + std::to_string(width) + "]";
      check_forward<Norm>(on, in, at);
      check_backward<Norm>(on, in, at);
    }
  for (const auto& [deviation, mean] :
       {std::pair{1e4, 0.}, std::pair{1e-4, 0.}, std::pair{1., 7.}, std::pair{0., 0.}}) {
    const Inputs in(70, 45, deviation, mean, 99);  // more rows than one chunk of partial sums
    const std::string at = name + " deviation " + std::to_string(deviation) + " mean " + std::to_string(mean);
    check_forward<Norm>(on, in, at);
    check_backward<Norm>(on, in, at);
  }
}

}  // namespace

TEST_CASE("RMSNorm") {
  check_norm<RMSNorm{.eps = 1e-5f}>("w");
  check_norm<RMSNorm{.eps = .02f, .gain = Gain::one_plus}>("1 + w");
  check_norm<RMSNorm{.eps = 1e-6f, .gain = Gain::none}>("no weight");
  check_norm<RMSNorm{.eps = 1e-3f, .gain = Gain::weight, .bias = true}>("w and bias");
}
TEST_CASE("LayerNorm") {
  check_norm<LayerNorm{.eps = 1e-5f}>("w and bias");
  check_norm<LayerNorm{.eps = 1e-3f, .gain = Gain::weight, .bias = false}>("w");
  check_norm<LayerNorm{.eps = 1e-2f, .gain = Gain::none, .bias = false}>("no weight");
  check_norm<LayerNorm{.eps = 1e-3f, .gain = Gain::one_plus, .bias = true}>("1 + w and bias");
}
TEST_CASE("NoNorm") { check_norm<NoNorm{}>("identity"); }

TEST_CASE("results do not depend on the number of threads") {
  const Inputs in(131, 37, 1, 0, 3);
  const auto x = floats(in.x), gain = floats(in.gain), bias = floats(in.bias), dy = floats(in.dy);
  std::vector<std::vector<float>> results;
  for (const int threads : {1, 2, 5}) {
    cpu::Device on(threads);
    std::vector<float> y(x.size()), mean(131), scale(131), dx(x.size()), dgain(37), dbias(37);
    const auto form = norm_form(fixed<LayerNorm{}>);
    norm_rows(on, form,
              NormArgs<float>{.y = y.data(),
                              .x = x.data(),
                              .gain = gain.data(),
                              .bias = bias.data(),
                              .mean = mean.data(),
                              .scale = scale.data(),
                              .rows = 131,
                              .width = 37});
    norm_rows_backward(on, form,
                       NormBackwardArgs<float>{.dx = dx.data(),
                                               .dy = dy.data(),
                                               .x = x.data(),
                                               .gain = gain.data(),
                                               .mean = mean.data(),
                                               .scale = scale.data(),
                                               .dgain = dgain.data(),
                                               .dbias = dbias.data(),
                                               .rows = 131,
                                               .width = 37});
    y.insert(y.end(), dx.begin(), dx.end());
    y.insert(y.end(), dgain.begin(), dgain.end());
    results.push_back(y);
  }
  CHECK(results[0] == results[1]);
  CHECK(results[0] == results[2]);
}
