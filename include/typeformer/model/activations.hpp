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

/// One block's activations, of type A. In inference all layers share one set and the residual stream is updated in
/// place; in training each layer has its own and nothing is overwritten. T: tokens, S: tokens of the encoder.
template <class A>
struct BlockActivations {
  A* x = nullptr;   // [T, d_model] the residual stream into the block
  A* h1 = nullptr;  // [T, d_model] attention's input: norm of x, or x
  NormStatistics h1_norm;
  A* fused = nullptr;  // [T, fused_width] q | k | v (| gate | up when both read one norm)
  A* q = nullptr;      // [T, q_width]
  A* k = nullptr;      // [T, kv_width], or the layer's cache
  A* v = nullptr;
  A* attended = nullptr;  // [T, q_width]
  float* lse = nullptr;   // [T, heads]
  A* branch1 = nullptr;   // [T, d_model] attention's output before its norm (norm_output), or the sum (norm_sum)
  NormStatistics branch1_norm;
  A* x1 = nullptr;  // [T, d_model] after attention
  A* hc = nullptr;  // [T, d_model] cross-attention's input
  NormStatistics hc_norm;
  A* cross_q = nullptr;  // [T, q_width]
  A* cross_k = nullptr;  // [S, kv_width]
  A* cross_v = nullptr;  // [S, kv_width]
  A* cross_attended = nullptr;
  float* cross_lse = nullptr;
  A* branch_cross = nullptr;
  NormStatistics branch_cross_norm;
  A* x2 = nullptr;  // [T, d_model] after cross-attention; x1 without it
  A* h2 = nullptr;  // [T, d_model] the feed-forward network's input
  NormStatistics h2_norm;
  A* ffn_in = nullptr;     // [T, ffn_in_width] gate | up; inside `fused` when both read one norm
  A* activated = nullptr;  // [T, d_ff]
  A* branch2 = nullptr;
  NormStatistics branch2_norm;
  A* y = nullptr;  // [T, d_model] the residual stream out of the block
};

/// Columns of the product that q, k and v come from.
template <class L>
constexpr int fused_width = L::qkv_width + (shares_input<L> ? L::ffn_in_width : 0);

/// Hands out arrays from one slab of bytes; without a slab it only counts.
class Slab {
 public:
  explicit Slab(std::byte* base = nullptr) : base_(base) {}
  template <class T>
  T* take(std::int64_t rows, std::int64_t width) {
    std::byte* at = base_ ? base_ + used_ : nullptr;
    used_ += (rows * width * std::int64_t{sizeof(T)} + 63) / 64 * 64;  // whole cache lines
    return reinterpret_cast<T*>(at);
  }
  NormStatistics statistics(std::int64_t rows) { return {take<float>(rows, 1), take<float>(rows, 1)}; }
  /// Bytes handed out so far.
  std::int64_t used() const { return used_; }

 private:
  std::byte* base_;
  std::int64_t used_ = 0;
};

/// Lays out the activations of a block of composition L whose input is x. `keep`: for a backward pass.
template <class L, class A>
BlockActivations<A> plan_block(Slab& slab, A* x, std::int64_t tokens, std::int64_t source_tokens, bool keep,
                               bool cached) {
  constexpr int d = L::dims.d_model;
  BlockActivations<A> a;
  const auto residual = [&](A* from) { return keep ? slab.take<A>(tokens, d) : from; };
  const auto statistics = [&] { return keep ? slab.statistics(tokens) : NormStatistics{}; };
  const auto input = [&](A* from, NormStatistics& kept) {
    if (!L::layout.norm_input) return from;
    kept = statistics();
    return slab.take<A>(tokens, d);
  };
  const auto branch = [&](NormStatistics& kept) -> A* {
    if (!L::layout.norm_output && !L::layout.norm_sum) return nullptr;
    kept = statistics();
    return slab.take<A>(tokens, d);
  };
  a.x = x;
  a.h1 = input(a.x, a.h1_norm);
  a.fused = slab.take<A>(tokens, fused_width<L>);
  a.q = slab.take<A>(tokens, L::q_width);
  if (!cached) a.k = slab.take<A>(tokens, L::kv_width), a.v = slab.take<A>(tokens, L::kv_width);
  a.attended = slab.take<A>(tokens, L::q_width);
  if (keep) a.lse = slab.take<float>(tokens, L::heads);
  a.branch1 = branch(a.branch1_norm);
  a.x1 = residual(a.x);
  a.x2 = a.x1;
  if constexpr (L::cross_attention) {
    a.hc = input(a.x1, a.hc_norm);
    a.cross_q = slab.take<A>(tokens, L::q_width);
    if (!cached)
      a.cross_k = slab.take<A>(source_tokens, L::kv_width), a.cross_v = slab.take<A>(source_tokens, L::kv_width);
    a.cross_attended = slab.take<A>(tokens, L::q_width);
    if (keep) a.cross_lse = slab.take<float>(tokens, L::heads);
    a.branch_cross = branch(a.branch_cross_norm);
    a.x2 = residual(a.x1);
  }
  a.h2 = shares_input<L> ? a.h1 : input(a.x2, a.h2_norm);
  a.ffn_in = shares_input<L> ? a.fused + (a.fused ? L::qkv_width : 0) : slab.take<A>(tokens, L::ffn_in_width);
  a.activated = slab.take<A>(tokens, L::dims.d_ff);
  a.branch2 = branch(a.branch2_norm);
  a.y = residual(a.x2);
  return a;
}

}  // namespace typeformer
