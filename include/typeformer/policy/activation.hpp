/// Slot 3 of a Transformer: the nonlinearity of the feed-forward network, with its derivative.
///
/// Plain: down(f(up(x))). Gated: down(f(gate(x)) * up(x)), Shazeer 2020, arXiv:2002.05202.
#pragma once
#include <concepts>
#include <type_traits>

#include "typeformer/core/annotate.hpp"
#include "typeformer/core/math.hpp"

namespace typeformer::inline TYPEFORMER_ABI {

/// max(x, 0).
struct ReLU {
  static constexpr bool gated = false;
  template <class T>
  TYPEFORMER_HD T operator()(T x) const {
    return math::select(x > T(0), x, T(0));
  }
  template <class T>
  TYPEFORMER_HD T derivative(T x) const {
    return math::select(x > T(0), T(1), T(0));
  }
};

/// max(x, 0)^2. So et al. 2021 (Primer), arXiv:2109.08668.
struct SquaredReLU {
  static constexpr bool gated = false;
  template <class T>
  TYPEFORMER_HD T operator()(T x) const {
    return math::select(x > T(0), x * x, T(0));
  }
  template <class T>
  TYPEFORMER_HD T derivative(T x) const {
    return math::select(x > T(0), T(2) * x, T(0));
  }
};

/// x Phi(x) with the error function; what HuggingFace calls "gelu". Hendrycks & Gimpel 2016, arXiv:1606.08415.
struct GELU {
  static constexpr bool gated = false;
  template <class T>
  TYPEFORMER_HD T operator()(T x) const {
    return T(.5) * x * (T(1) + math::erf(x * T(.70710678118654752)));
  }
  template <class T>
  TYPEFORMER_HD T derivative(T x) const {
    const T density = math::exp(T(-.5) * x * x) * T(.39894228040143268);
    return T(.5) * (T(1) + math::erf(x * T(.70710678118654752))) + x * density;
  }
};

/// GELU by its tanh approximation; "gelu_new", "gelu_pytorch_tanh". arXiv:1606.08415, section 2.
struct GELUTanh {
  static constexpr bool gated = false;
  template <class T>
  TYPEFORMER_HD T operator()(T x) const {
    return T(.5) * x * (T(1) + math::tanh(inner(x)));
  }
  template <class T>
  TYPEFORMER_HD T derivative(T x) const {
    const T t = math::tanh(inner(x));
    const T slope = T(.79788456080286536) * (T(1) + T(3 * .044715) * x * x);
    return T(.5) * (T(1) + t) + T(.5) * x * (T(1) - t * t) * slope;
  }

 private:
  template <class T>
  TYPEFORMER_HD static T inner(T x) {
    return T(.79788456080286536) * (x + T(.044715) * x * x * x);
  }
};

/// 1 / (1 + exp(-x)), without overflow for large |x|.
struct Sigmoid {
  static constexpr bool gated = false;
  template <class T>
  TYPEFORMER_HD T operator()(T x) const {
    const T decayed = math::exp(math::select(x > T(0), -x, x));  // in (0, 1]
    return math::select(x > T(0), T(1), decayed) / (T(1) + decayed);
  }
  template <class T>
  TYPEFORMER_HD T derivative(T x) const {
    const T s = (*this)(x);
    return s * (T(1) - s);
  }
};

/// x sigmoid(x), also called Swish (beta = 1). Ramachandran et al. 2017, arXiv:1710.05941.
struct SiLU {
  static constexpr bool gated = false;
  template <class T>
  TYPEFORMER_HD T operator()(T x) const {
    return x * Sigmoid{}(x);
  }
  template <class T>
  TYPEFORMER_HD T derivative(T x) const {
    const T s = Sigmoid{}(x);
    return s * (T(1) + x * (T(1) - s));
  }
};

/// x sigmoid(1.702 x), GELU's sigmoid approximation. arXiv:1606.08415, section 2.
struct QuickGELU {
  static constexpr bool gated = false;
  template <class T>
  TYPEFORMER_HD T operator()(T x) const {
    return x * Sigmoid{}(T(1.702) * x);
  }
  template <class T>
  TYPEFORMER_HD T derivative(T x) const {
    const T s = Sigmoid{}(T(1.702) * x);
    return s * (T(1) + T(1.702) * x * (T(1) - s));
  }
};

/// x for x > 0, alpha (exp(x) - 1) below. Clevert et al. 2015, arXiv:1511.07289, eq. 16.
struct ELU {
  float alpha = 1.f;
  static constexpr bool gated = false;
  template <class T>
  TYPEFORMER_HD T operator()(T x) const {
    // exp(x) - 1 = 2t / (1 - t) with t = tanh(x / 2): nothing cancels near zero.
    const T t = math::tanh(T(.5) * math::select(x > T(0), T(0), x));
    return math::select(x > T(0), x, T(alpha) * (T(2) * t / (T(1) - t)));
  }
  template <class T>
  TYPEFORMER_HD T derivative(T x) const {
    return math::select(x > T(0), T(1), T(alpha) * math::exp(math::select(x > T(0), T(0), x)));
  }
};

/// lambda * ELU with the constants that keep mean 0 and variance 1. Klambauer et al. 2017, arXiv:1706.02515, eq. 2.
struct SELU {
  static constexpr double lambda = 1.0507009873554804934, alpha = 1.6732632423543772848;
  static constexpr bool gated = false;
  template <class T>
  TYPEFORMER_HD T operator()(T x) const {
    return math::select(x > T(0), T(lambda) * x, T(lambda * alpha) * ELU{}(math::select(x > T(0), T(0), x)));
  }
  template <class T>
  TYPEFORMER_HD T derivative(T x) const {
    return math::select(x > T(0), T(lambda), T(lambda * alpha) * math::exp(math::select(x > T(0), T(0), x)));
  }
};

/// x: the gate of the bilinear unit.
struct Identity {
  static constexpr bool gated = false;
  template <class T>
  TYPEFORMER_HD T operator()(T x) const {
    return x;
  }
  template <class T>
  TYPEFORMER_HD T derivative(T) const {
    return T(1);
  }
};

/// f(gate) * up, for any plain activation f, and for the number types that f takes. Shazeer 2020, arXiv:2002.05202, eq.
/// 5 and 6.
template <class Activation>
struct Gated {
  Activation activation{};
  static constexpr bool gated = true;
  template <class T>
  requires std::same_as<std::invoke_result_t<const Activation&, T>, T> TYPEFORMER_HD T operator()(T gate, T up) const {
    return activation(gate) * up;
  }
  template <class T>
  requires std::same_as<std::invoke_result_t<const Activation&, T>, T> TYPEFORMER_HD T derivative_gate(T gate, T up)
  const { return activation.derivative(gate) * up; }
  template <class T>
  requires std::same_as<std::invoke_result_t<const Activation&, T>, T> TYPEFORMER_HD T derivative_up(T gate, T)
  const { return activation(gate); }
};
using GLU = Gated<Sigmoid>;         ///< Dauphin et al. 2016, arXiv:1612.08083
using LiGLU = Gated<Identity>;      ///< bilinear
using ReGLU = Gated<ReLU>;          ///< Shazeer 2020, eq. 5
using GeGLU = Gated<GELU>;          ///< Shazeer 2020, eq. 5
using GeGLUTanh = Gated<GELUTanh>;  ///< T5 v1.1, Gemma
using SwiGLU = Gated<SiLU>;         ///< Llama, Mistral, Qwen, OLMo

/// y = f(x): p(x), and f'(x) as p.derivative(x).
template <class P>
concept PlainActivation = requires(const P p, float v) {
  requires !P::gated;
  { p(v) } -> std::same_as<float>;
  { p.derivative(v) } -> std::same_as<float>;
};
/// y = f(gate, up): p(gate, up), and its partial derivatives.
template <class P>
concept GatedActivation = requires(const P p, float v) {
  requires P::gated;
  { p(v, v) } -> std::same_as<float>;
  { p.derivative_gate(v, v) } -> std::same_as<float>;
  { p.derivative_up(v, v) } -> std::same_as<float>;
};
/// What an activation must give: `gated`, its value, and its derivative (both of them when gated).
template <class P>
concept ActivationPolicy = PlainActivation<P> || GatedActivation<P>;

/// d_ff of a gated network with the parameters of a plain one of width 4 d_model: 2/3 of it, rounded up to a multiple.
constexpr int glu_width(int d_model, int multiple = 1) {
  const int width = 8 * d_model / 3;
  return (width + multiple - 1) / multiple * multiple;
}

}  // namespace typeformer
