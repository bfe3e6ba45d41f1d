// Activations: values and derivatives against PyTorch's in f64, derivatives against dual numbers, the edges of float.
#include "typeformer/policy/activation.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "policy/dual.hpp"
#include "policy/golden_json.hpp"

namespace tf = typeformer;
using user::Dual;

namespace {

/// Sixteen roundings of terms as large as x; of 1 where the function or derivative does not vanish at zero.
template <class T>
double tolerance(double x, bool vanishes_at_zero) {
  return 16 * double{std::numeric_limits<T>::epsilon()} * (vanishes_at_zero ? std::abs(x) : std::max(1., std::abs(x)));
}

template <class T, class Activation>
void compare_with_pytorch(const Activation& f, const std::string& name) {
  static const nlohmann::json table = golden_formulas("activations");
  const auto points = table.at("points").get<std::vector<double>>();
  const auto values = table.at(name).at("value").get<std::vector<double>>();
  const auto derivatives = table.at(name).at("derivative").get<std::vector<double>>();
  REQUIRE(points.size() > 40);
  const bool vanishes = f(0.) == 0., flat = f.derivative(0.) == 0.;
  for (std::size_t i = 0; i < points.size(); ++i) {
    CAPTURE(name);
    CAPTURE(points[i]);
    const auto x = static_cast<T>(points[i]);
    CHECK(std::abs(double{f(x)} - values[i]) <= tolerance<T>(points[i], vanishes));
    CHECK(std::abs(double{f.derivative(x)} - derivatives[i]) <= tolerance<T>(points[i], flat));
  }
}

template <class Activation>
void compare_with_duals(const Activation& f, const std::string& name) {
  for (double x = -12; x <= 12; x += .0625) {
    CAPTURE(name);
    CAPTURE(x);
    const Dual y = f(Dual(x, 1));
    CHECK(std::abs(y.slope - f.derivative(x)) <= tolerance<double>(x, false));
    CHECK(std::abs(y.value - f(x)) <= tolerance<double>(x, false));
    CHECK(f.derivative(Dual(x)).value == doctest::Approx(f.derivative(x)).epsilon(1e-12));
  }
}

template <class Activation>
void check_activation(const Activation& f, const std::string& name) {
  static_assert(tf::ActivationPolicy<Activation> && !Activation::gated);
  compare_with_pytorch<float>(f, name);
  compare_with_pytorch<double>(f, name);
  compare_with_duals(f, name);
}

}  // namespace

TEST_CASE("plain activations") {
  check_activation(tf::ReLU{}, "relu");
  check_activation(tf::SquaredReLU{}, "relu2");
  check_activation(tf::GELU{}, "gelu");
  check_activation(tf::GELUTanh{}, "gelu_tanh");
  check_activation(tf::Sigmoid{}, "sigmoid");
  check_activation(tf::SiLU{}, "silu");
  check_activation(tf::QuickGELU{}, "quick_gelu");
  check_activation(tf::ELU{}, "elu");
  check_activation(tf::SELU{}, "selu");
}

TEST_CASE("ELU's alpha is the limit below") {
  CHECK(tf::ELU{.alpha = .5f}(-100.) == -.5);
  CHECK(tf::ELU{.alpha = .5f}(3.) == 3.);
  CHECK(tf::ELU{.alpha = .5f}.derivative(-1.) == doctest::Approx(.5 * std::exp(-1.)).epsilon(1e-14));
  compare_with_duals(tf::ELU{.alpha = .5f}, "elu, alpha 0.5");
}

TEST_CASE("no value or derivative of float overflows or is lost where the function itself is finite") {
  const auto finite = [](auto f) {
    for (const float x : {-1e30f, -1e9f, -88.f, -1e-38f, 1e-38f, 88.f, 1e9f}) {
      CAPTURE(x);
      CHECK(std::isfinite(f(x)));
      CHECK(std::isfinite(f.derivative(x)));
    }
  };
  finite(tf::ReLU{});
  finite(tf::GELU{});
  finite(tf::Sigmoid{});
  finite(tf::SiLU{});
  finite(tf::QuickGELU{});
  finite(tf::ELU{});
  finite(tf::SELU{});
  CHECK(tf::Sigmoid{}(-80.f) == doctest::Approx(1.8048514e-35));  // exp(-80), not 0
  CHECK(tf::SiLU{}(-80.f) == doctest::Approx(-1.4438811e-33));
  CHECK(std::isfinite(tf::GELUTanh{}(-1e9f)));
  CHECK(std::isfinite(tf::GELUTanh{}.derivative(1e9f)));
}

TEST_CASE("gated activations: f(gate) * up, and both derivatives") {
  const auto check = [](auto gated, auto plain) {
    static_assert(tf::ActivationPolicy<decltype(gated)> && decltype(gated)::gated);
    for (double gate = -5; gate <= 5; gate += .375) {
      for (const double up : {-2.5, 0., .75, 3.}) {
        CAPTURE(gate);
        CAPTURE(up);
        CHECK(gated(gate, up) == plain(gate) * up);
        CHECK(gated(static_cast<float>(gate), static_cast<float>(up)) ==
              plain(static_cast<float>(gate)) * static_cast<float>(up));
        const double by_gate = gated(Dual(gate, 1), Dual(up)).slope, by_up = gated(Dual(gate), Dual(up, 1)).slope;
        CHECK(std::abs(gated.derivative_gate(gate, up) - by_gate) <= tolerance<double>(gate * up, false));
        CHECK(std::abs(gated.derivative_up(gate, up) - by_up) <= tolerance<double>(gate * up, false));
      }
    }
  };
  check(tf::GLU{}, tf::Sigmoid{});
  check(tf::LiGLU{}, tf::Identity{});
  check(tf::ReGLU{}, tf::ReLU{});
  check(tf::GeGLU{}, tf::GELU{});
  check(tf::GeGLUTanh{}, tf::GELUTanh{});
  check(tf::SwiGLU{}, tf::SiLU{});
  CHECK(tf::LiGLU{}(3., 5.) == 15.);
}

namespace user {
/// An activation that only takes float.
struct Cubic {
  static constexpr bool gated = false;
  float operator()(float x) const { return x * x * x; }
  float derivative(float x) const { return 3 * x * x; }
};
}  // namespace user

TEST_CASE("a gate takes the number types that its activation takes") {
  using Gated = tf::Gated<user::Cubic>;
  static_assert(tf::ActivationPolicy<Gated>);
  static_assert(std::is_invocable_v<Gated, float, float> && !std::is_invocable_v<Gated, Dual, Dual>);
  static_assert(std::is_invocable_v<tf::SwiGLU, Dual, Dual>);
  CHECK(Gated{}(2.f, 5.f) == 40.f);
  CHECK(Gated{}.derivative_gate(2.f, 5.f) == 60.f);
}

TEST_CASE("glu_width: two thirds of 4 d_model, rounded up") {
  CHECK(tf::glu_width(4096, 256) == 11008);  // Llama 2, 7B
  CHECK(tf::glu_width(5120, 256) == 13824);  // 13B
  CHECK(tf::glu_width(8192, 256) == 22016);  // Llama 1, 65B
  CHECK(tf::glu_width(512, 64) == 1408);
  CHECK(tf::glu_width(48) == 128);
  CHECK(tf::glu_width(50) == 133);
}
