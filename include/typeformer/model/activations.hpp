/// The activations of one pass through a block, as pointers into memory that is planned before anything runs.
#pragma once
#include <cstddef>
#include <cstdint>

#include "typeformer/kernel/buffer.hpp"
#include "typeformer/model/layers.hpp"

namespace typeformer::inline TYPEFORMER_ABI::detail {

/// What a norm keeps for its backward, one number per row.
struct NormStatistics {
  float* mean = nullptr;
  float* scale = nullptr;
};

/// One block's activations. In inference all layers share one set and the residual stream is updated in place; in
/// training each layer has its own and nothing is overwritten. T: tokens, S: tokens of the encoder.
struct BlockActivations {
  float* x = nullptr;   // [T, d_model] the residual stream into the block
  float* h1 = nullptr;  // [T, d_model] attention's input: norm of x, or x
  NormStatistics h1_norm;
  float* fused = nullptr;  // [T, fused_width] q | k | v (| gate | up when both read one norm)
  float* q = nullptr;      // [T, q_width]
  float* k = nullptr;      // [T, kv_width], or the layer's cache
  float* v = nullptr;
  float* attended = nullptr;  // [T, q_width]
  float* lse = nullptr;       // [T, heads]
  float* branch1 = nullptr;   // [T, d_model] attention's output before its norm (norm_output), or the sum (norm_sum)
  NormStatistics branch1_norm;
  float* x1 = nullptr;  // [T, d_model] after attention
  float* hc = nullptr;  // [T, d_model] cross-attention's input
  NormStatistics hc_norm;
  float* cross_q = nullptr;  // [T, q_width]
  float* cross_k = nullptr;  // [S, kv_width]
  float* cross_v = nullptr;  // [S, kv_width]
  float* cross_attended = nullptr;
  float* cross_lse = nullptr;
  float* branch_cross = nullptr;
  NormStatistics branch_cross_norm;
  float* x2 = nullptr;  // [T, d_model] after cross-attention; x1 without it
  float* h2 = nullptr;  // [T, d_model] the feed-forward network's input
  NormStatistics h2_norm;
  float* ffn_in = nullptr;     // [T, ffn_in_width] gate | up; inside `fused` when both read one norm
  float* activated = nullptr;  // [T, d_ff]
  float* branch2 = nullptr;
  NormStatistics branch2_norm;
  float* y = nullptr;  // [T, d_model] the residual stream out of the block
};

/// Columns of the product that q, k and v come from.
template <class L>
constexpr int fused_width = L::qkv_width + (one_product<L> ? L::ffn_in_width : 0);

/// Hands out floats from one slab; without a slab it only counts.
class Slab {
 public:
  explicit Slab(float* base = nullptr) : base_(base) {}
  float* take(std::int64_t rows, std::int64_t width) {
    float* at = base_ ? base_ + used_ : nullptr;
    used_ += (rows * width + 15) / 16 * 16;  // whole cache lines
    return at;
  }
  NormStatistics statistics(std::int64_t rows) { return {take(rows, 1), take(rows, 1)}; }
  std::int64_t used() const { return used_; }

 private:
  float* base_;
  std::int64_t used_ = 0;
};

/// Lays out the activations of a block of composition L whose input is x. `keep`: for a backward pass.
template <class L>
BlockActivations plan_block(Slab& slab, float* x, std::int64_t tokens, std::int64_t source_tokens, bool keep,
                            bool cached) {
  constexpr int d = L::dims.d_model;
  BlockActivations a;
  const auto residual = [&](float* from) { return keep ? slab.take(tokens, d) : from; };
  const auto statistics = [&] { return keep ? slab.statistics(tokens) : NormStatistics{}; };
  const auto input = [&](float* from, NormStatistics& kept) {
    if (!L::layout.norm_input) return from;
    kept = statistics();
    return slab.take(tokens, d);
  };
  const auto branch = [&](NormStatistics& kept) -> float* {
    if (!L::layout.norm_output && !L::layout.norm_sum) return nullptr;
    kept = statistics();
    return slab.take(tokens, d);
  };
  a.x = x;
  a.h1 = input(a.x, a.h1_norm);
  a.fused = slab.take(tokens, fused_width<L>);
  a.q = slab.take(tokens, L::q_width);
  if (!cached) a.k = slab.take(tokens, L::kv_width), a.v = slab.take(tokens, L::kv_width);
  a.attended = slab.take(tokens, L::q_width);
  if (keep) a.lse = slab.take(tokens, L::heads);
  a.branch1 = branch(a.branch1_norm);
  a.x1 = residual(a.x);
  a.x2 = a.x1;
  if constexpr (L::cross_attention) {
    a.hc = input(a.x1, a.hc_norm);
    a.cross_q = slab.take(tokens, L::q_width);
    if (!cached) a.cross_k = slab.take(source_tokens, L::kv_width), a.cross_v = slab.take(source_tokens, L::kv_width);
    a.cross_attended = slab.take(tokens, L::q_width);
    if (keep) a.cross_lse = slab.take(tokens, L::heads);
    a.branch_cross = branch(a.branch_cross_norm);
    a.x2 = residual(a.x1);
  }
  a.h2 = one_product<L> ? a.h1 : input(a.x2, a.h2_norm);
  a.ffn_in = one_product<L> ? a.fused + (a.fused ? L::qkv_width : 0) : slab.take(tokens, L::ffn_in_width);
  a.activated = slab.take(tokens, L::dims.d_ff);
  a.branch2 = branch(a.branch2_norm);
  a.y = residual(a.x2);
  return a;
}

}  // namespace typeformer
