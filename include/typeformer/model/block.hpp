/// One block: attention, cross-attention where there is an encoder, feed-forward; norms and residuals as its layout
/// says. The only file that reads BlockLayout. Forward and backward stand side by side, step by step.
#pragma once
#include "typeformer/kernel/activation_type.hpp"
#include "typeformer/kernel/contract.hpp"
#include "typeformer/model/activations.hpp"
#include "typeformer/model/arena.hpp"
#include "typeformer/model/tables.hpp"

namespace typeformer::inline TYPEFORMER_ABI::detail {

/// The segments of a pass, in both memories.
struct PassSegments {
  std::span<const Segment> on_host{};
  const Segment* on_device = nullptr;
  int count() const { return static_cast<int>(on_host.size()); }
};

/// The tokens of a pass whose activations are of type A, as the layers of one kind see them. Pointers are to the
/// device's memory.
template <class A>
struct PassTokens {
  std::int64_t tokens = 0;
  const std::int32_t* positions = nullptr;  // [T]
  const std::int64_t* kv_rows = nullptr;    // [T] rows of the cache; null: keys lie beside the queries
  PassSegments segments{};
  std::int64_t source_tokens = 0;  // S: tokens of the encoder, 0 without one
  PassSegments cross_segments{};
  const A* source = nullptr;  // [S, d_model] the encoder's output; null when the cache has its keys and values
};

/// The steps of one block of composition L.
template <class L, class Device, class W>
class Block {
 public:
  using A = activation_t<Device, W>;
  static constexpr int d_model = L::dims.d_model;
  static constexpr bool parallel = L::layout.parallel;

  Block(Device& on, const StackView<const W>& weights, int layer, const PositionTables<Device>& tables,
        const PassTokens<A>& pass, const BlockActivations<A>& activations)
      : on_(on), w_(weights), layer_(layer), tables_(tables), pass_(pass), a_(activations) {}

  void forward() {
    if constexpr (L::layout.norm_input) normalize(Tensor::ln1_weight, a_.h1_norm, a_.x, a_.h1);          // [T, d_model]
    if constexpr (parallel && !shares_input<L>) normalize(Tensor::ln2_weight, a_.h2_norm, a_.x, a_.h2);  // [T, d_model]
    project_heads();                                                                                     // [T, q|k|v]
    attend_tokens();                                                                                     // [T, q_width]
    add_branch(a_.attended, L::q_width, attention_branch(), a_.x, a_.x1);                                // [T, d_model]
    if constexpr (L::cross_attention) {
      if constexpr (L::layout.norm_input) normalize(Tensor::ln_cross_weight, a_.hc_norm, a_.x1, a_.hc);  // [T, d_model]
      attend_source();                                                                                   // [T, q_width]
      add_branch(a_.cross_attended, L::q_width, cross_branch(), a_.x1, a_.x2);                           // [T, d_model]
    }
    if constexpr (L::layout.norm_input && !parallel)
      normalize(Tensor::ln2_weight, a_.h2_norm, a_.x2, a_.h2);                   // [T, d_model]
    feed_forward();                                                              // [T, d_ff]
    add_branch(a_.activated, L::dims.d_ff, feed_forward_branch(), a_.x2, a_.y);  // [T, d_model]
  }

 protected:
  /// How a branch returns to the residual stream: its output matrix, and the norm on it or on the sum.
  struct Branch {
    Tensor weight, bias, output_norm, sum_norm;
    A* value;
    NormStatistics kept;
    Tensor norm() const { return L::layout.norm_output ? output_norm : sum_norm; }
  };
  Branch attention_branch() const {
    return {Tensor::output_weight, Tensor::output_bias, Tensor::ln1_post_weight,
            Tensor::ln1_weight,    a_.branch1,          a_.branch1_norm};
  }
  Branch cross_branch() const {
    return {Tensor::cross_output_weight, Tensor::cross_output_bias, Tensor::ln_cross_post_weight,
            Tensor::ln_cross_weight,     a_.branch_cross,           a_.branch_cross_norm};
  }
  Branch feed_forward_branch() const {
    return {Tensor::down_weight, Tensor::down_bias, Tensor::ln2_post_weight,
            Tensor::ln2_weight,  a_.branch2,        a_.branch2_norm};
  }

  static constexpr auto norm_kernel() { return norm_form(fixed<L::norm>); }
  static constexpr auto qk_norm_kernel() { return norm_form(fixed<L::qk_norm.norm>); }
  const float* vector(Tensor tensor) const { return w_.vector(tensor, layer_); }
  const W* matrix(Tensor tensor) const { return w_.matrix(tensor, layer_); }

  void normalize(Tensor weight, const NormStatistics& kept, const A* x, A* y, const A* residual = nullptr) {
    norm_rows(on_, norm_kernel(),
              NormArgs<A>{.y = y,
                          .x = x,
                          .residual = residual,
                          .gain = vector(weight),
                          .bias = vector(bias_of(weight)),
                          .mean = kept.mean,
                          .scale = kept.scale,
                          .rows = pass_.tokens,
                          .width = d_model});
  }
  void product(A* y, const A* x, Tensor weight, const float* bias, int in, int out, std::int64_t y_stride = 0,
               const A* residual = nullptr) {
    linear(on_, LinearArgs<A, W>{.y = y,
                                 .x = x,
                                 .w = matrix(weight),
                                 .bias = bias,
                                 .residual = residual,
                                 .rows = pass_.tokens,
                                 .in = in,
                                 .out = out,
                                 .y_stride = y_stride});
  }

  /// q | k | v = h1 W^T + bias, and in the same product gate | up when both read one norm.
  void project_heads() {
    product(a_.fused, a_.h1, Tensor::q_weight, vector(Tensor::q_bias), d_model,
            one_product<L> ? fused_width<L> : L::qkv_width, fused_width<L>);
    if constexpr (shares_input<L> && !one_product<L>) project_feed_forward();
  }
  void project_feed_forward() {
    constexpr bool gated = policy_t<L::activation>::gated;
    constexpr bool inside = shares_input<L>;
    product(a_.ffn_in, a_.h2, gated ? Tensor::gate_weight : Tensor::up_weight,
            vector(gated ? Tensor::gate_bias : Tensor::up_bias), d_model, L::ffn_in_width,
            inside ? fused_width<L> : L::ffn_in_width);
  }
  HeadsArgs<A> heads_args() const {
    return {.q = a_.q,
            .k = a_.k,
            .v = a_.v,
            .qkv = a_.fused,
            .q_gain = vector(Tensor::q_norm_weight),
            .k_gain = vector(Tensor::k_norm_weight),
            .q_bias = vector(Tensor::q_norm_bias),
            .k_bias = vector(Tensor::k_norm_bias),
            .position = pass_.positions,
            .kv_row = pass_.kv_rows,
            .tokens = pass_.tokens,
            .heads = L::heads,
            .kv_heads = L::kv_heads,
            .head_dim = L::head_dim,
            .qkv_stride = fused_width<L>,
            .per_head_gain = L::qk_norm.width == QKWidth::head_own_weights,
            .all_heads = L::qk_norm.width == QKWidth::all_heads,
            .norm_after_rope = L::qk_norm.after_rope};
  }
  AttendArgsOf<A, L::head_dim> attend_args() const {
    return {{.o = a_.attended,
             .q = a_.q,
             .k = a_.k,
             .v = a_.v,
             .lse = a_.lse,
             .segments = pass_.segments.on_device,
             .host_segments = pass_.segments.on_host.data(),
             .segment_count = pass_.segments.count(),
             .heads = L::heads,
             .kv_heads = L::kv_heads,
             .head_dim = L::head_dim}};
  }
  AttendArgsOf<A, L::head_dim> cross_args() const {
    return {{.o = a_.cross_attended,
             .q = a_.cross_q,
             .k = a_.cross_k,
             .v = a_.cross_v,
             .lse = a_.cross_lse,
             .segments = pass_.cross_segments.on_device,
             .host_segments = pass_.cross_segments.on_host.data(),
             .segment_count = pass_.cross_segments.count(),
             .heads = L::heads,
             .kv_heads = L::kv_heads,
             .head_dim = L::head_dim}};
  }
  auto score() const { return score_form<L>(tables_, w_.vector(Tensor::relative_bias)); }

  void attend_tokens() {
    prepare_heads(on_, qk_norm_kernel(), rotation<L>(tables_), heads_args());
    attend(on_, L::mask, score(), attend_args());
  }
  /// Keys and values come from the encoder's output, once: decoding finds them in the cache.
  void attend_source() {
    if (pass_.source) {
      source_product(a_.cross_k, Tensor::cross_k_weight, Tensor::cross_k_bias);
      source_product(a_.cross_v, Tensor::cross_v_weight, Tensor::cross_v_bias);
    }
    product(a_.cross_q, a_.hc, Tensor::cross_q_weight, vector(Tensor::cross_q_bias), d_model, L::q_width);
    attend(on_, L::cross_mask, cross_score_form<L>(), cross_args());
  }
  void source_product(A* y, Tensor weight, Tensor bias) {
    linear(on_, LinearArgs<A, W>{.y = y,
                                 .x = pass_.source,
                                 .w = matrix(weight),
                                 .bias = vector(bias),
                                 .rows = pass_.source_tokens,
                                 .in = d_model,
                                 .out = L::kv_width});
  }
  void feed_forward() {
    if constexpr (!shares_input<L>) project_feed_forward();
    activate(on_, L::activation,
             ActivateArgs<A>{.y = a_.activated,
                             .x = a_.ffn_in,
                             .rows = pass_.tokens,
                             .width = L::dims.d_ff,
                             .x_stride = shares_input<L> ? fused_width<L> : 0});
  }

  /// y = x + f, x + N(f) or N(x + f), with f = input W^T + bias.
  void add_branch(const A* input, int width, const Branch& b, const A* x, A* y) {
    constexpr auto layout = L::layout;
    if constexpr (layout.norm_output) {
      product(b.value, input, b.weight, vector(b.bias), width, d_model);
      normalize(b.norm(), b.kept, b.value, y, x);
    } else if constexpr (layout.norm_sum) {
      product(b.value, input, b.weight, vector(b.bias), width, d_model, 0, x);
      normalize(b.norm(), b.kept, b.value, y);
    } else {
      product(y, input, b.weight, vector(b.bias), width, d_model, 0, x);
    }
  }

  Device& on_;
  StackView<const W> w_;
  int layer_;
  const PositionTables<Device>& tables_;
  const PassTokens<A>& pass_;
  BlockActivations<A> a_;
};

/// Memory for the gradients inside one block; shared by the layers.
template <class A>
struct BlockGradients {
  A* branch = nullptr;  // [T, d_model]
  A* share = nullptr;   // [T, d_model] what the feed-forward network of a parallel block adds to dx
  A* h = nullptr;       // [T, d_model]
  A* wide = nullptr;    // [T, max(q_width, d_ff)]
  A* fused = nullptr;   // [T, max(fused_width, ffn_in_width)]
  A* q = nullptr;       // [T, q_width]
  A* k = nullptr;       // [max(T, S), kv_width]
  A* v = nullptr;
};

template <class L, class A>
BlockGradients<A> plan_block_gradients(Slab& slab, std::int64_t tokens, std::int64_t source_tokens) {
  BlockGradients<A> g;
  g.branch = slab.take<A>(tokens, L::dims.d_model);
  if constexpr (L::layout.parallel && !shares_input<L>) g.share = slab.take<A>(tokens, L::dims.d_model);
  g.h = slab.take<A>(tokens, L::dims.d_model);
  g.wide = slab.take<A>(tokens, std::max(L::q_width, L::dims.d_ff));
  g.fused = slab.take<A>(tokens, std::max(fused_width<L>, L::ffn_in_width));
  g.q = slab.take<A>(tokens, L::q_width);
  g.k = slab.take<A>(std::max(tokens, source_tokens), L::kv_width);
  g.v = slab.take<A>(std::max(tokens, source_tokens), L::kv_width);
  return g;
}

/// The backward of Block: reads the activations that a forward with `keep` left, accumulates the gradients of
/// parameters.
template <class L, class Device, class W>
class BlockBackward : Block<L, Device, W> {
  using Base = Block<L, Device, W>;
  using Base::a_, Base::d_model, Base::layer_, Base::matrix, Base::on_, Base::parallel, Base::pass_, Base::vector;
  using typename Base::A;
  using typename Base::Branch;

 public:
  /// `dsource`: [S, d_model] gradient of the encoder's output, +=; null without one.
  BlockBackward(const Base& forward, const StackView<float>& gradients, const BlockGradients<A>& scratch, A* dsource)
      : Base(forward), dw_(gradients), g_(scratch), dsource_(dsource) {}

  /// dx: the gradient of the block's output in, of its input out. [T, d_model]
  void backward(A* dx) {
    branch_backward(this->feed_forward_branch(), a_.activated, L::dims.d_ff, dx, g_.wide);
    feed_forward_backward(dx);
    if constexpr (L::cross_attention) {
      branch_backward(this->cross_branch(), a_.cross_attended, L::q_width, dx, g_.wide);
      attend_source_backward();
      input_backward(Tensor::ln_cross_weight, a_.hc_norm, a_.x1, Tensor::cross_q_weight, Tensor::cross_q_bias, a_.hc,
                     g_.q, L::q_width, dx);
    }
    if constexpr (parallel) {
      parallel_attention_backward(dx);
    } else {
      branch_backward(this->attention_branch(), a_.attended, L::q_width, dx, g_.wide);
      attend_tokens_backward();
      input_backward(Tensor::ln1_weight, a_.h1_norm, a_.x, Tensor::q_weight, Tensor::q_bias, a_.h1, g_.fused,
                     L::qkv_width, dx);
    }
  }

 private:
  float* dvector(Tensor tensor) const { return dw_.vector(tensor, layer_); }
  float* dmatrix(Tensor tensor) const { return dw_.matrix(tensor, layer_); }

  void normalize_backward(Tensor weight, const NormStatistics& kept, const A* x, const A* dy, A* dx, bool accumulate) {
    norm_rows_backward(on_, Base::norm_kernel(),
                       NormBackwardArgs<A>{.dx = dx,
                                           .dy = dy,
                                           .x = x,
                                           .gain = vector(weight),
                                           .mean = kept.mean,
                                           .scale = kept.scale,
                                           .dgain = dvector(weight),
                                           .dbias = dvector(bias_of(weight)),
                                           .rows = pass_.tokens,
                                           .width = d_model,
                                           .accumulate = accumulate});
  }
  void product_backward(A* dx, const A* dy, const A* x, Tensor weight, Tensor bias, int in, int out, std::int64_t rows,
                        bool accumulate = false, std::int64_t dy_stride = 0) {
    linear_backward(on_, LinearBackwardArgs<A, W>{.dx = dx,
                                                  .dw = dmatrix(weight),
                                                  .dbias = dvector(bias),
                                                  .dy = dy,
                                                  .x = x,
                                                  .w = matrix(weight),
                                                  .rows = rows,
                                                  .in = in,
                                                  .out = out,
                                                  .dy_stride = dy_stride,
                                                  .accumulate = accumulate});
  }

  /// Backward of add_branch: dx becomes the gradient of the residual x, dinput that of the branch's input.
  void branch_backward(const Branch& b, const A* input, int width, A* dx, A* dinput) {
    constexpr auto layout = L::layout;
    const A* dbranch = dx;
    if constexpr (layout.norm_output) {
      normalize_backward(b.norm(), b.kept, b.value, dx, g_.branch, false);
      dbranch = g_.branch;
    } else if constexpr (layout.norm_sum) {
      normalize_backward(b.norm(), b.kept, b.value, dx, dx, false);
    }
    product_backward(dinput, dbranch, input, b.weight, b.bias, width, d_model, pass_.tokens);
  }
  /// Backward of the product that reads a block's (normalized) input h: dx += dh through the norm.
  void input_backward(Tensor norm, const NormStatistics& kept, const A* x, Tensor weight, Tensor bias, const A* h,
                      const A* dy, int out, A* dx) {
    if constexpr (L::layout.norm_input) {
      product_backward(g_.h, dy, h, weight, bias, d_model, out, pass_.tokens);
      normalize_backward(norm, kept, x, g_.h, dx, true);
    } else {
      product_backward(dx, dy, h, weight, bias, d_model, out, pass_.tokens, true);
    }
  }

  void activation_backward(A* d_in, std::int64_t stride) {
    activate_backward(on_, L::activation,
                      ActivateBackwardArgs<A>{.dx = d_in,
                                              .dy = g_.wide,
                                              .x = a_.ffn_in,
                                              .rows = pass_.tokens,
                                              .width = L::dims.d_ff,
                                              .x_stride = shares_input<L> ? fused_width<L> : 0,
                                              .dx_stride = stride});
  }
  /// In a parallel block attention still needs the gradient of the output: its share of dx is added at the end.
  void feed_forward_backward(A* dx) {
    constexpr bool gated = policy_t<L::activation>::gated;
    constexpr Tensor weight = gated ? Tensor::gate_weight : Tensor::up_weight,
                     bias = gated ? Tensor::gate_bias : Tensor::up_bias;
    if constexpr (shares_input<L>) {
      activation_backward(g_.fused + L::qkv_width, fused_width<L>);
    } else if constexpr (parallel) {
      activation_backward(g_.fused, 0);
      product_backward(g_.h, g_.fused, a_.h2, weight, bias, d_model, L::ffn_in_width, pass_.tokens);
      normalize_backward(Tensor::ln2_weight, a_.h2_norm, a_.x, g_.h, g_.share, false);
    } else {
      activation_backward(g_.fused, 0);
      input_backward(Tensor::ln2_weight, a_.h2_norm, a_.x2, weight, bias, a_.h2, g_.fused, L::ffn_in_width, dx);
    }
  }
  /// dx is the gradient of the sum x + attention + feed_forward until the shares of both are added to it.
  void parallel_attention_backward(A* dx) {
    branch_backward(this->attention_branch(), a_.attended, L::q_width, dx, g_.wide);
    attend_tokens_backward();
    if constexpr (one_product<L>) {
      product_backward(g_.h, g_.fused, a_.h1, Tensor::q_weight, Tensor::q_bias, d_model, fused_width<L>, pass_.tokens);
      normalize_backward(Tensor::ln1_weight, a_.h1_norm, a_.x, g_.h, dx, true);
    } else if constexpr (shares_input<L>) {
      constexpr bool gated = policy_t<L::activation>::gated;
      product_backward(g_.h, g_.fused, a_.h1, Tensor::q_weight, Tensor::q_bias, d_model, L::qkv_width, pass_.tokens,
                       false, fused_width<L>);
      product_backward(g_.h, g_.fused + L::qkv_width, a_.h1, gated ? Tensor::gate_weight : Tensor::up_weight,
                       gated ? Tensor::gate_bias : Tensor::up_bias, d_model, L::ffn_in_width, pass_.tokens, true,
                       fused_width<L>);
      normalize_backward(Tensor::ln1_weight, a_.h1_norm, a_.x, g_.h, dx, true);
    } else {
      input_backward(Tensor::ln1_weight, a_.h1_norm, a_.x, Tensor::q_weight, Tensor::q_bias, a_.h1, g_.fused,
                     L::qkv_width, dx);
      add(on_, AddArgs<A>{.y = dx, .a = dx, .b = g_.share, .count = pass_.tokens * d_model});
    }
  }

  /// From g_.wide, the gradient of `attended`, to that of q | k | v in g_.fused.
  void attend_tokens_backward() {
    attend_backward(on_, L::mask, this->score(),
                    AttendBackwardArgsOf<A, L::head_dim>{{.dq = g_.q,
                                                          .dk = g_.k,
                                                          .dv = g_.v,
                                                          .dtable = dw_.vector(Tensor::relative_bias),
                                                          .d_o = g_.wide,
                                                          .forward = this->attend_args()}});
    prepare_heads_backward(on_, Base::qk_norm_kernel(), rotation<L>(this->tables_),
                           HeadsBackwardArgs<A>{.dqkv = g_.fused,
                                                .dq = g_.q,
                                                .dk = g_.k,
                                                .dv = g_.v,
                                                .dq_gain = dvector(Tensor::q_norm_weight),
                                                .dk_gain = dvector(Tensor::k_norm_weight),
                                                .dq_bias = dvector(Tensor::q_norm_bias),
                                                .dk_bias = dvector(Tensor::k_norm_bias),
                                                .forward = this->heads_args()});
  }
  /// From g_.wide to the gradient of cross_q in g_.q; that of the encoder's output is added to dsource.
  void attend_source_backward() {
    attend_backward(on_, L::cross_mask, cross_score_form<L>(),
                    AttendBackwardArgsOf<A, L::head_dim>{
                        {.dq = g_.q, .dk = g_.k, .dv = g_.v, .d_o = g_.wide, .forward = this->cross_args()}});
    product_backward(dsource_, g_.k, pass_.source, Tensor::cross_k_weight, Tensor::cross_k_bias, d_model, L::kv_width,
                     pass_.source_tokens, true);
    product_backward(dsource_, g_.v, pass_.source, Tensor::cross_v_weight, Tensor::cross_v_bias, d_model, L::kv_width,
                     pass_.source_tokens, true);
  }

  StackView<float> dw_;
  BlockGradients<A> g_;
  A* dsource_;
};

}  // namespace typeformer
