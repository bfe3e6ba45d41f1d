/// prepare_heads and its backward on the CPU: q/k norm, RoPE, and the write to the cache.
#pragma once
#include <algorithm>
#include <cmath>
#include <type_traits>
#include <vector>

#include "typeformer/kernel/cpu/norm.hpp"

namespace typeformer::inline TYPEFORMER_ABI::cpu {
namespace detail {

/// cos and sin of one token's position, for every pair.
class Angles {
 public:
  template <Pairs kind>
  Angles(const Rotation<kind>& rotation, int position) {
    const auto pairs = static_cast<std::size_t>(rotation.width / 2);
    cos_.resize(pairs);
    sin_.resize(pairs);
    for (std::size_t i = 0; i < pairs; ++i) {
      const float angle = static_cast<float>(position) * rotation.frequencies[i];
      cos_[i] = std::cos(angle) * rotation.amplitude;
      sin_[i] = std::sin(angle) * rotation.amplitude;
    }
  }
  /// Turns one head: (a, b) -> (a cos - b sin, b cos + a sin). `back`: by the transposed matrix, as gradients turn.
  template <Pairs kind>
  void turn(float* head, bool back = false) const {
    const std::size_t pairs = cos_.size();
    for (std::size_t i = 0; i < pairs; ++i) {
      float& a = head[kind == Pairs::adjacent ? 2 * i : i];
      float& b = head[kind == Pairs::adjacent ? 2 * i + 1 : i + pairs];
      const float sine = back ? -sin_[i] : sin_[i], turned = a * cos_[i] - b * sine;
      b = b * cos_[i] + a * sine;
      a = turned;
    }
  }

 private:
  std::vector<float> cos_, sin_;
};

/// The heads of q or k of one token: how many, their gain and bias, and over how many channels a norm's statistics go.
struct HeadGroup {
  const float* gain;
  const float* bias;
  int heads, head_dim, width;  // width: head_dim, or all heads together
  bool own_gain;
  std::int64_t gain_at(int channel) const { return own_gain || width != head_dim ? channel : 0; }
  const float* gain_of(int channel) const { return gain ? gain + gain_at(channel) : nullptr; }
  const float* bias_of(int channel) const { return bias ? bias + gain_at(channel) : nullptr; }
};
/// The heads of q.
template <class T>
HeadGroup q_group(const HeadsArgs<T>& a) {
  return {a.q_gain, a.q_bias, a.heads, a.head_dim, a.all_heads ? a.heads * a.head_dim : a.head_dim, a.per_head_gain};
}
/// The heads of k.
template <class T>
HeadGroup k_group(const HeadsArgs<T>& a) {
  return {a.k_gain,       a.k_bias, a.kv_heads, a.head_dim, a.all_heads ? a.kv_heads * a.head_dim : a.head_dim,
          a.per_head_gain};
}

/// False for the form of no norm: nothing is read then, not even a gain.
template <class Norm>
constexpr bool normalizes = !std::is_same_v<Norm, NormForm<NoNorm, Gain::none, false>>;

/// Normalizes one token's heads in place.
template <class Norm>
void normalize_heads(const Norm& norm, const HeadGroup& g, float* values) {
  if constexpr (normalizes<Norm>)
    for (int c = 0; c < g.heads * g.head_dim; c += g.width) {
      const auto s = row_statistics(norm, values + c, g.width);
      normalize_row(norm, s, values + c, values + c, g.gain_of(c), g.bias_of(c), g.width);
    }
}
/// Turns one token's heads in place; `back`: as gradients turn.
template <Pairs kind>
void turn_heads(const Angles& angles, const HeadGroup& g, float* values, bool back = false) {
  for (int h = 0; h < g.heads; ++h) angles.turn<kind>(values + h * g.head_dim, back);
}

/// d: gradient of the prepared heads in, of the raw ones out. x: the raw heads. dgain, dbias: +=.
template <class Norm, Pairs kind>
void prepare_backward(const Norm& norm, const Angles& angles, const HeadGroup& g, bool norm_after_rope, float* d,
                      const float* x, float* dgain, float* dbias) {
  const int channels = g.heads * g.head_dim;
  if (!norm_after_rope) turn_heads<kind>(angles, g, d, true);
  if constexpr (normalizes<Norm>) {
    std::vector<float> input(x, x + channels);
    if (norm_after_rope) turn_heads<kind>(angles, g, input.data());
    for (int c = 0; c < channels; c += g.width) {
      const auto s = row_statistics(norm, input.data() + c, g.width);
      const auto at = g.gain_at(c);
      normalize_row_backward(norm, s, {d + c, dgain + at, dbias + at, false}, d + c, input.data() + c, g.gain_of(c),
                             g.width);
    }
  }
  if (norm_after_rope) turn_heads<kind>(angles, g, d, true);
}

}  // namespace detail

/// q = turned and normalized q part of qkv; k likewise and v as it is, to their rows of the cache; see HeadsArgs.
template <class Norm, Pairs kind>
void prepare_heads(Device& on, const Norm& norm, const Rotation<kind>& rotation, const HeadsArgs<float>& a) {
  const int q_width = a.heads * a.head_dim, kv_width = a.kv_heads * a.head_dim;
  const std::int64_t stride = a.qkv_stride ? a.qkv_stride : q_width + 2 * kv_width;
  const auto prepare = [&](const detail::HeadGroup& group, const detail::Angles& angles, float* values) {
    if (!a.norm_after_rope) detail::normalize_heads(norm, group, values);
    detail::turn_heads<kind>(angles, group, values);
    if (a.norm_after_rope) detail::normalize_heads(norm, group, values);
  };
  on.parallel(a.tokens, 4, [&](std::int64_t first, std::int64_t last) {
    for (auto token = first; token < last; ++token) {
      const float* qkv = a.qkv + token * stride;
      const std::int64_t row = a.kv_row ? a.kv_row[token] : token;
      const detail::Angles angles(rotation, rotation.width ? a.position[token] : 0);
      float* q = a.q + token * q_width;
      float* k = a.k + row * kv_width;
      std::copy_n(qkv, q_width, q);
      std::copy_n(qkv + q_width, kv_width, k);
      std::copy_n(qkv + q_width + kv_width, kv_width, a.v + row * kv_width);
      prepare(detail::q_group(a), angles, q);
      prepare(detail::k_group(a), angles, k);
    }
  });
}

/// dqkv (=) from dq, dk and dv, and the gradients of gains and biases (+=), in a fixed order; see HeadsBackwardArgs.
template <class Norm, Pairs kind>
void prepare_heads_backward(Device& on, const Norm& norm, const Rotation<kind>& rotation,
                            const HeadsBackwardArgs<float>& a) {
  const HeadsArgs<float>& f = a.forward;
  const int q_width = f.heads * f.head_dim, kv_width = f.kv_heads * f.head_dim;
  const std::int64_t stride = f.qkv_stride ? f.qkv_stride : q_width + 2 * kv_width;
  const bool shared_gain = !f.per_head_gain && !f.all_heads;
  const int q_gain = shared_gain ? f.head_dim : q_width, k_gain = shared_gain ? f.head_dim : kv_width;
  float* const to[] = {a.dq_gain, a.dk_gain, a.dq_bias, a.dk_bias};
  const int widths[] = {q_gain, k_gain, q_gain, k_gain};
  const auto sizes = static_cast<std::size_t>(2 * (q_gain + k_gain));
  detail::sum_over_chunks(on, f.tokens, 32, sizes, to, widths, 4,
                          [&](std::int64_t first, std::int64_t last, float* partial) {
                            float* dq_gain = partial;
                            float* dk_gain = dq_gain + q_gain;
                            float* dq_bias = dk_gain + k_gain;
                            float* dk_bias = dq_bias + q_gain;
                            for (auto token = first; token < last; ++token) {
                              const float* qkv = f.qkv + token * stride;
                              float* dqkv = a.dqkv + token * stride;
                              const detail::Angles angles(rotation, rotation.width ? f.position[token] : 0);
                              std::copy_n(a.dq + token * q_width, q_width, dqkv);
                              std::copy_n(a.dk + token * kv_width, kv_width, dqkv + q_width);
                              std::copy_n(a.dv + token * kv_width, kv_width, dqkv + q_width + kv_width);
                              detail::prepare_backward<Norm, kind>(norm, angles, detail::q_group(f), f.norm_after_rope,
                                                                   dqkv, qkv, dq_gain, dq_bias);
                              detail::prepare_backward<Norm, kind>(norm, angles, detail::k_group(f), f.norm_after_rope,
                                                                   dqkv + q_width, qkv + q_width, dk_gain, dk_bias);
                            }
                          });
}

}  // namespace typeformer::inline TYPEFORMER_ABI::cpu
