/// Slot 5 of a Transformer: heads, and what happens to a score between the dot product and the softmax.
#pragma once
#include <concepts>

#include "typeformer/core/fixed.hpp"
#include "typeformer/core/math.hpp"
#include "typeformer/policy/norm.hpp"

namespace typeformer::inline TYPEFORMER_ABI {

/// Grouped-query attention: query head h reads key/value head h / (heads / kv_heads). Ainslie et al. 2023,
/// arXiv:2305.13245. score = softcap(scale * q.k) + bias, softcap(s) = cap * tanh(s / cap); softmax over the keys the
/// mask lets through.
struct GQA {
  int heads = 0;
  int kv_heads = 0;
  int head_dim = 0;     ///< 0: d_model / heads
  float scale = 0.f;    ///< of the dot product; 0: 1 / sqrt(head_dim)
  float softcap = 0.f;  ///< 0: none
};
/// The scale of a dot product of that many channels unless a policy says another: 1 / sqrt(channels). Vaswani et al.
/// 2017, eq. 1.
constexpr float dot_product_scale(double channels) { return static_cast<float>(1 / constant_sqrt(channels)); }

/// Multi-head attention: every query head has its own key and value head. Vaswani et al. 2017, section 3.2.2.
constexpr GQA MHA(int heads, int head_dim = 0) { return {.heads = heads, .kv_heads = heads, .head_dim = head_dim}; }
/// Multi-query attention: one key and value head for all. Shazeer 2019, arXiv:1911.02150.
constexpr GQA MQA(int heads, int head_dim = 0) { return {.heads = heads, .kv_heads = 1, .head_dim = head_dim}; }

/// What an attention policy must give: GQA's fields, with the same meaning.
template <class P>
concept AttentionPolicy = requires(const P p) {
  { p.heads } -> std::convertible_to<int>;
  { p.kv_heads } -> std::convertible_to<int>;
  { p.head_dim } -> std::convertible_to<int>;
  { p.scale } -> std::convertible_to<float>;
  { p.softcap } -> std::convertible_to<float>;
};

/// What a q/k norm takes its statistics over, and which weights it has: one head, weights shared by the heads (Qwen 3,
/// Gemma 3); one head, weights per head (Cohere, Chameleon); all heads together (OLMo 2).
enum class QKWidth { head, head_own_weights, all_heads };

/// Option: query and key are normalized before the dot product. Henry et al. 2020, arXiv:2010.04245.
template <auto Norm>
struct QKNorm {
  QKWidth width = QKWidth::head;
  bool after_rope = false;
  static constexpr auto norm = Norm;
};

/// An option that normalizes query and key: QKNorm's members.
template <class P>
concept QKNormOption = requires(const P p) {
  { p.width } -> std::convertible_to<QKWidth>;
  { p.after_rope } -> std::convertible_to<bool>;
  requires NormPolicy<std::remove_cvref_t<decltype(P::norm)>>;
};
/// No q/k norm.
using NoQKNorm = QKNorm<NoNorm{}>;

}  // namespace typeformer
