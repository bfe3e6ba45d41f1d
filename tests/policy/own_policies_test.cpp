// A user's own policy in every slot and kind of option, defined outside the library's namespace.
#include <doctest/doctest.h>

#include <cmath>
#include <string_view>
#include <type_traits>

#include "policy/dual.hpp"
#include "typeformer/policy/composition.hpp"

namespace tf = typeformer;

namespace user {

/// y = gain * tanh(alpha x) + bias: no statistics of the row at all. Zhu et al. 2025, arXiv:2503.10622, alpha fixed.
struct DynamicTanh {
  float alpha = .5f;
  tf::Gain gain = tf::Gain::weight;
  bool bias = true;
  static constexpr bool centered = false;
  template <class T>
  T scale(T) const {
    return T(alpha);
  }
  template <class T>
  T normalize(T x, T scale) const {
    return tf::math::tanh(scale * x);
  }
  template <class T>
  T normalize_backward(T d, T x, T scale, T, T) const {
    const T y = normalize(x, scale);
    return d * scale * (T(1) - y * y);
  }
};

/// log(1 + exp(x)), float only.
struct Softplus {
  static constexpr bool gated = false;
  float operator()(float x) const { return x > 20.f ? x : std::log1p(std::exp(x)); }
  float derivative(float x) const { return 1.f / (1.f + std::exp(-x)); }
};

/// A gated activation of its own: up * gate^2.
struct SquareGate {
  static constexpr bool gated = true;
  float operator()(float gate, float up) const { return gate * gate * up; }
  float derivative_gate(float gate, float up) const { return 2 * gate * up; }
  float derivative_up(float gate, float) const { return gate * gate; }
};

/// Rotation with the same frequency for every pair.
struct Pendulum {
  static constexpr tf::ActsOn acts_on = tf::ActsOn::query_key;
  tf::Pairs pairs = tf::Pairs::adjacent;
  constexpr int rotary_width(int) const { return 2; }
  double frequency(int, int) const { return .1; }
  float amplitude() const { return 1.f; }
};

/// A bias of the score that falls with the logarithm of the distance (Kerple, Chi et al. 2022, arXiv:2205.09921).
struct LogDistance {
  static constexpr tf::ActsOn acts_on = tf::ActsOn::score;
  struct OfHead {
    float slope;
    float operator()(int query, int key) const {
      return -slope * std::log1p(std::abs(static_cast<float>(query - key)));
    }
  };
  OfHead head_bias(int head, int heads) const { return {static_cast<float>(head + 1) / static_cast<float>(heads)}; }
};

/// A trained bias by clipped distance.
struct ClippedDistance {
  int furthest = 4;
  static constexpr tf::ActsOn acts_on = tf::ActsOn::score;
  static constexpr std::string_view table_name = "distance_bias.weight";
  constexpr int reach() const { return furthest; }
  constexpr int row(int relative) const {
    return furthest + (relative < -furthest ? -furthest : relative > furthest ? furthest : relative);
  }
  constexpr int table_rows(int) const { return 2 * furthest + 1; }
};

/// A ramp added to the embedding; odd widths too.
struct Ramp {
  static constexpr tf::ActsOn acts_on = tf::ActsOn::embedding;
  float embedding(int position, int channel, int) const { return channel == 0 ? static_cast<float>(position) : 0.f; }
};

/// Keys whose distance is a power of two, and the query's own; no span.
struct PowersOfTwo {
  constexpr bool sees(int query, int key, const tf::MaskData&) const {
    const int distance = query - key;
    return distance >= 0 && (distance & (distance - 1)) == 0;
  }
};

/// x = x + N'(f(N(x))) without a final norm, branches side by side.
struct DoubleParallel {
  static constexpr bool norm_input = true, norm_output = true, norm_sum = false, parallel = true, final_norm = false;
};

/// Heads counted from the width.
struct HeadsOfSixteen {
  int heads = 3, kv_heads = 3, head_dim = 16;
  float scale = .2f, softcap = 0.f;
  bool operator==(const HeadsOfSixteen&) const = default;
};

/// Layers whose index is a prime number differ, and the last one differs again.
struct Primes {
  int last = 6;
  static constexpr int kinds = 3;
  constexpr int kind(int layer) const {
    if (layer == last) return 2;
    for (int i = 2; i < layer; ++i)
      if (layer % i == 0) return 0;
    return layer >= 2 ? 1 : 0;
  }
  template <int kind>
  struct Of {
    using type = tf::Changes<>;
  };
  template <int kind>
  using changes = typename Of<kind>::type;
};
template <>
struct Primes::Of<1> {
  using type = tf::Changes<PowersOfTwo{}>;
};
template <>
struct Primes::Of<2> {
  using type = tf::Changes<tf::NoPosition{}, Softplus{}>;
};

}  // namespace user

namespace {
constexpr tf::Dims dims{.vocab = 101, .d_model = 48, .n_layers = 7, .d_ff = 96, .max_seq = 64};
using Base = tf::Transformer<dims, tf::RMSNorm{}, tf::SwiGLU{}, tf::RoPE{}, tf::MHA(6), tf::PreNorm{}>;
}  // namespace

TEST_CASE("every slot takes a policy of the user's") {
  using Own = tf::Transformer<dims, user::DynamicTanh{}, user::Softplus{}, user::Pendulum{}, user::HeadsOfSixteen{},
                              user::DoubleParallel{}, user::PowersOfTwo{}, user::Primes{}, tf::Name{"own"}>;
  static_assert(tf::Composition<Own>);
  CHECK(Own::head_dim == 16);
  CHECK(Own::score_scale == .2f);
  CHECK(Own::norm.alpha == .5f);
  CHECK(Own::ffn_in_width == 96);
  CHECK(Own::layout.parallel);
  CHECK_FALSE(tf::shares_norm<Own::layout>());
  CHECK(Own::mask.sees(9, 5, {}));
  CHECK_FALSE(Own::mask.sees(9, 6, {}));
}

TEST_CASE("with<> knows whose slot a user's policy fills") {
  static_assert(std::is_same_v<tf::policy_t<Base::with<user::DynamicTanh{}>::norm>, user::DynamicTanh>);
  static_assert(std::is_same_v<tf::policy_t<Base::with<user::Softplus{}>::activation>, user::Softplus>);
  static_assert(Base::with<user::SquareGate{}>::ffn_in_width == 192);
  static_assert(std::is_same_v<tf::policy_t<Base::with<user::LogDistance{}>::position>, user::LogDistance>);
  static_assert(std::is_same_v<tf::policy_t<Base::with<user::ClippedDistance{}>::position>, user::ClippedDistance>);
  static_assert(std::is_same_v<tf::policy_t<Base::with<user::HeadsOfSixteen{}>::attention>, user::HeadsOfSixteen>);
  static_assert(std::is_same_v<tf::policy_t<Base::with<user::DoubleParallel{}>::layout>, user::DoubleParallel>);
  static_assert(std::is_same_v<tf::policy_t<Base::with<user::PowersOfTwo{}>::mask>, user::PowersOfTwo>);
  static_assert(Base::with<user::Primes{}>::layer_kinds == 3);
  static_assert(std::is_same_v<Base::with<user::DynamicTanh{}>::with<tf::RMSNorm{}>, Base>);
  static_assert(tf::Composition<Base::with<tf::QKNorm<user::DynamicTanh{}>{}>>);
  static_assert(tf::Composition<Base::with<tf::EmbeddingNorm<user::DynamicTanh{}>{}>>);
}

TEST_CASE("the position concepts tell a user's policies apart") {
  static_assert(tf::RotaryPosition<user::Pendulum> && tf::FormulaBias<user::LogDistance>);
  static_assert(tf::TableBias<user::ClippedDistance> && tf::FormulaPosition<user::Ramp>);
  // The rule about pairs of sinusoids is Sinusoidal's, not every formula's.
  static_assert(
      tf::composes<tf::Dims{101, 45, 7, 96, 64}, tf::RMSNorm{}, tf::ReLU{}, user::Ramp{}, tf::MHA(5), tf::PreNorm{}>);
}

TEST_CASE("a pattern of the user's need not be periodic, nor have two kinds") {
  using Patterned = Base::with<user::Primes{}>;
  static_assert(tf::Composition<Patterned>);
  constexpr int expected[] = {0, 0, 1, 1, 0, 1, 2};
  for (int layer = 0; layer < 7; ++layer) CHECK(Patterned::layer_kind(layer) == expected[layer]);
  static_assert(std::is_same_v<tf::policy_t<Patterned::Layer<0>::mask>, tf::Causal>);
  static_assert(std::is_same_v<tf::policy_t<Patterned::Layer<1>::mask>, user::PowersOfTwo>);
  static_assert(std::is_same_v<tf::policy_t<Patterned::Layer<2>::position>, tf::NoPosition>);
  static_assert(Patterned::Layer<2>::ffn_in_width == 96 && Patterned::Layer<1>::ffn_in_width == 192);
}

namespace user {
/// One kind that is not the model's: every layer changed.
struct AllChanged {
  static constexpr int kinds = 1;
  constexpr int kind(int) const { return 0; }
  template <int>
  using changes = tf::Changes<tf::SlidingWindow{3}>;
};
struct NoKinds {
  static constexpr int kinds = 0;
  constexpr int kind(int) const { return 0; }
  template <int>
  using changes = tf::Changes<>;
};
struct TooMany {
  static constexpr int kinds = 2;
  constexpr int kind(int layer) const { return layer; }
  template <int>
  using changes = tf::Changes<>;
};
}  // namespace user

TEST_CASE("patterns with one kind, with none, and with a kind too many") {
  static_assert(Base::with<user::AllChanged{}>::Layer<0>::mask.window == 3);
  constexpr auto with_pattern = []<auto pattern>(tf::Fixed<pattern>) {
    return tf::composes<dims, tf::RMSNorm{}, tf::SwiGLU{}, tf::RoPE{}, tf::MHA(6), tf::PreNorm{}, pattern>;
  };
  static_assert(with_pattern(tf::fixed<user::AllChanged{}>));
  static_assert(!with_pattern(tf::fixed<user::NoKinds{}>) && !with_pattern(tf::fixed<user::TooMany{}>));
  static_assert(!with_pattern(tf::fixed<user::Primes{.last = -1}>) ==
                false);  // without a last layer: still kinds 0 and 1
}

namespace user {
/// Each lacks one thing, or has it in another type.
struct NormWithoutBackward {
  tf::Gain gain = tf::Gain::none;
  bool bias = false;
  static constexpr bool centered = false;
  float scale(float) const { return 1.f; }
  float normalize(float x, float) const { return x; }
};
struct ActivationWithoutDerivative {
  static constexpr bool gated = false;
  float operator()(float x) const { return x; }
};
struct GateOfOneArgument {
  static constexpr bool gated = true;
  float operator()(float x) const { return x; }
  float derivative(float) const { return 1.f; }
};
struct MaskThatCounts {
  int sees(int, int, const tf::MaskData&) const { return 1; }
};
struct RotationWithoutWidth {
  static constexpr tf::ActsOn acts_on = tf::ActsOn::query_key;
  double frequency(int, int) const { return .1; }
};
struct PatternWithoutChanges {
  static constexpr int kinds = 1;
  constexpr int kind(int) const { return 0; }
};
}  // namespace user

TEST_CASE("what is incomplete is no policy, and composes says so without an error") {
  static_assert(!tf::NormPolicy<user::NormWithoutBackward> && !tf::ActivationPolicy<user::ActivationWithoutDerivative>);
  static_assert(!tf::ActivationPolicy<user::GateOfOneArgument> && !tf::MaskPolicy<user::MaskThatCounts>);
  static_assert(tf::PositionPolicy<user::RotationWithoutWidth> && !tf::RotaryPosition<user::RotationWithoutWidth>);
  static_assert(!tf::LayerPattern<user::PatternWithoutChanges> && tf::LayerPattern<user::Primes>);
  static_assert(!tf::composes<dims, user::NormWithoutBackward{}, tf::SwiGLU{}, tf::RoPE{}, tf::MHA(6), tf::PreNorm{}>);
  static_assert(
      !tf::composes<dims, tf::RMSNorm{}, tf::SwiGLU{}, user::RotationWithoutWidth{}, tf::MHA(6), tf::PreNorm{}>);
  static_assert(
      !tf::composes<dims, tf::RMSNorm{}, tf::SwiGLU{}, tf::RoPE{}, tf::MHA(6), tf::PreNorm{}, user::MaskThatCounts{}>);
}

TEST_CASE("the formulas of a user's norm are differentiable like the library's") {
  for (double x = -4; x <= 4; x += .25) {
    const user::DynamicTanh norm{.alpha = .75f};
    const user::Dual y = norm.normalize(user::Dual(x, 1), norm.scale(user::Dual(2)));
    CHECK(norm.normalize_backward(3., x, norm.scale(2.), 0., 0.) == doctest::Approx(3 * y.slope).epsilon(1e-12));
  }
}
