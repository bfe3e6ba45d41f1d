// Policies of a user's own, for the CPU and for CUDA kernels alike: a norm, an activation, a position and a mask.
// Formulas are templates over the number type, so that they also run in vector lanes and on dual numbers.
#pragma once
#include <typeformer/typeformer.hpp>

namespace mine {
namespace tf = typeformer;

/// y = gain * tanh(alpha x) + bias, without any statistics of the row: DyT, Zhu et al. 2025, arXiv:2503.10622, with a
/// fixed alpha.
struct DynamicTanh {
  float alpha = .5f;
  tf::Gain gain = tf::Gain::weight;
  bool bias = true;
  static constexpr bool centered = false;

  template <class T>
  TYPEFORMER_HD T scale(T /*mean_square*/) const {
    return T(alpha);
  }
  template <class T>
  TYPEFORMER_HD T normalize(T x, T scale) const {
    return tf::math::tanh(x * scale);
  }
  template <class T>
  TYPEFORMER_HD T normalize_backward(T d, T x, T scale, T /*mean_d*/, T /*mean_d_normalized*/) const {
    const T y = normalize(x, scale);
    return d * scale * (T(1) - y * y);
  }
};

/// log(1 + exp(x)), without overflow.
struct Softplus {
  static constexpr bool gated = false;
  template <class T>
  TYPEFORMER_HD T operator()(T x) const {
    const T below = tf::math::select(x > T(0), -x, x);
    return tf::math::select(x > T(0), x, T(0)) + tf::math::log(T(1) + tf::math::exp(below));
  }
  template <class T>
  TYPEFORMER_HD T derivative(T x) const {
    return tf::Sigmoid{}(x);
  }
};

/// Takes slope(head) * log(1 + distance) from the score: Kerple, Chi et al. 2022, arXiv:2205.09921, with fixed slopes.
struct LogDistance {
  float steepest = 1.f;
  static constexpr tf::ActsOn acts_on = tf::ActsOn::score;
  struct OfHead {
    float slope;
    TYPEFORMER_HD float operator()(int query, int key) const {
      const int distance = query > key ? query - key : key - query;
      return -slope * tf::math::log(1.f + static_cast<float>(distance));
    }
  };
  TYPEFORMER_HD OfHead head_bias(int head, int heads) const {
    return {steepest * static_cast<float>(head + 1) / static_cast<float>(heads)};
  }
};

/// The last `window` keys, and before them every `stride`-th: Child et al. 2019, arXiv:1904.10509, figure 3, in one
/// mask.
struct Strided {
  int window = 4, stride = 4;
  TYPEFORMER_HD constexpr bool sees(int query, int key, const tf::MaskData&) const {
    return key <= query && (query - key < window || key % stride == 0);
  }
  /// Nothing after the last query is seen, and all of them see the keys that lie in the windows of all.
  TYPEFORMER_HD constexpr tf::KeySpan span(int first, int last, int key_count, const tf::MaskData&) const {
    const int from = last - window + 1;
    return {0, last < key_count ? last + 1 : key_count, from > 0 ? from : 0, first < key_count ? first + 1 : key_count};
  }
};

}  // namespace mine
