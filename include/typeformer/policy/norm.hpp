/// Slot 2 of a Transformer: how a row of activations is normalized.
///
/// Every norm is y = gain * normalize(x - mean?, scale(mean square)) + bias, row by row: a policy gives the formulas
/// and their derivative, a kernel the sums over the row, the learned gain and the bias.
#pragma once
#include <concepts>

#include "typeformer/core/annotate.hpp"
#include "typeformer/core/fixed.hpp"
#include "typeformer/core/math.hpp"

namespace typeformer::inline TYPEFORMER_ABI {

/// The learned factor of a norm: none, w, or 1 + w (Gemma, Nemotron: the file stores w).
enum class Gain { none, weight, one_plus };

/// x / sqrt(mean(x^2) + eps) * gain. Zhang & Sennrich 2019, arXiv:1910.07467, eq. 4, with eps inside the root.
struct RMSNorm {
  float eps = 1e-5f;
  Gain gain = Gain::weight;
  bool bias = false;
  static constexpr bool centered = false;

  template <class T>
  TYPEFORMER_HD T scale(T mean_square) const {
    return math::rsqrt(mean_square + T(eps));
  }
  template <class T>
  TYPEFORMER_HD T normalize(T x, T scale) const {
    return x * scale;
  }
  /// dL/dx from d = dL/dnormalized, with the row's means of d and of d * normalized.
  template <class T>
  TYPEFORMER_HD T normalize_backward(T d, T x, T scale, T /*mean_d*/, T mean_d_normalized) const {
    return scale * (d - x * scale * mean_d_normalized);
  }
};

/// (x - mean) / sqrt(var + eps) * gain + bias, with the biased variance. Ba et al. 2016, arXiv:1607.06450, eq. 4.
struct LayerNorm {
  float eps = 1e-5f;
  Gain gain = Gain::weight;
  bool bias = true;
  static constexpr bool centered = true;

  template <class T>
  TYPEFORMER_HD T scale(T mean_square) const {
    return math::rsqrt(mean_square + T(eps));
  }
  template <class T>
  TYPEFORMER_HD T normalize(T x, T scale) const {
    return x * scale;
  }
  /// x is the centred value; see RMSNorm.
  template <class T>
  TYPEFORMER_HD T normalize_backward(T d, T x, T scale, T mean_d, T mean_d_normalized) const {
    return scale * (d - mean_d - x * scale * mean_d_normalized);
  }
};

/// y = x: a block without norms.
struct NoNorm {
  static constexpr Gain gain = Gain::none;
  static constexpr bool bias = false;
  static constexpr bool centered = false;

  template <class T>
  TYPEFORMER_HD T scale(T) const {
    return T(1);
  }
  template <class T>
  TYPEFORMER_HD T normalize(T x, T) const {
    return x;
  }
  template <class T>
  TYPEFORMER_HD T normalize_backward(T d, T, T, T, T) const {
    return d;
  }
};

/// What a norm must give. `centered`: the row's mean is subtracted first. `gain`, `bias`: its learned parameters.
/// The formulas may be templates over the number type or take float only (then kernels run them value by value).
template <class P>
concept NormPolicy = requires(const P p, float v) {
  { P::centered } -> std::convertible_to<bool>;
  { p.gain } -> std::convertible_to<Gain>;
  { p.bias } -> std::convertible_to<bool>;
  { p.scale(v) } -> std::same_as<float>;
  { p.normalize(v, v) } -> std::same_as<float>;
  { p.normalize_backward(v, v, v, v, v) } -> std::same_as<float>;
};

/// The kernel form of a norm: the type says which code runs, the field carries the numbers.
template <class Policy, Gain kind, bool with_bias>
struct NormForm {
  static constexpr Gain gain = kind;
  static constexpr bool has_gain = kind != Gain::none;
  static constexpr bool has_bias = with_bias;
  static constexpr bool centered = Policy::centered;
  Policy policy;
};

/// The kernel form of a policy value.
template <auto Norm>
requires NormPolicy<policy_t<Norm>>
constexpr auto norm_form(Fixed<Norm>) { return NormForm<policy_t<Norm>, Norm.gain, Norm.bias>{Norm}; }

}  // namespace typeformer
