/// A stack of blocks between embedding and head, forward and backward.
#pragma once
#include <string_view>
#include <vector>

#include "typeformer/kernel/supports.hpp"
#include "typeformer/model/model.hpp"
#include "typeformer/model/observer.hpp"
#include "typeformer/model/pass.hpp"

namespace typeformer::inline TYPEFORMER_ABI::detail {

template <class S>
constexpr bool has_embedding_norm = !std::is_same_v<policy_t<S::embedding_norm>, NoNorm>;
template <class S>
constexpr bool has_final_norm = S::layout.final_norm && !std::is_same_v<policy_t<S::norm>, NoNorm>;

/// The activations of a pass through a stack, of type A.
template <class A>
struct StackActivations {
  A* raw_embedding = nullptr;  // [T, d_model] before the embedding norm; x without one
  NormStatistics embedding_norm;
  A* x = nullptr;                           // [T, d_model] into the first block
  std::vector<BlockActivations<A>> blocks;  // one per layer, or (inference) one per kind of layer
  bool per_layer = false;
  A* hidden = nullptr;  // [T, d_model] out of the last block
  A* normed = nullptr;  // [T, d_model] after the final norm; hidden without one
  NormStatistics final_norm;
};

/// Lays out a pass of `tokens` tokens. `keep`: every layer its own activations, for a backward. `cached`: keys and
/// values live in a cache.
template <class S, class A>
StackActivations<A> plan_stack(Slab& slab, std::int64_t tokens, std::int64_t source_tokens, bool keep, bool cached) {
  constexpr int d = S::dims.d_model;
  StackActivations<A> a;
  a.raw_embedding = a.x = slab.take<A>(tokens, d);
  if (has_embedding_norm<S> && keep) a.x = slab.take<A>(tokens, d), a.embedding_norm = slab.statistics(tokens);
  a.hidden = a.x;
  a.per_layer = keep;
  if (keep) {
    for (int layer = 0; layer < S::dims.n_layers; ++layer)
      with_layer<S>(layer, [&]<class L, int>() {
        a.blocks.push_back(plan_block<L>(slab, a.hidden, tokens, source_tokens, true, cached));
        a.hidden = a.blocks.back().y;
      });
  } else {  // the kinds share the memory: only one block is under way at a time
    const Slab start = slab;
    Slab widest = slab;
    for_each_kind<S>([&]<class L, int>() {
      Slab own = start;
      a.blocks.push_back(plan_block<L>(own, a.x, tokens, source_tokens, false, cached));
      if (own.used() > widest.used()) widest = own;
    });
    slab = widest;
  }
  a.normed = a.hidden;
  if constexpr (has_final_norm<S>) {
    a.normed = slab.take<A>(tokens, d);
    if (keep) a.final_norm = slab.statistics(tokens);
  }
  return a;
}

/// Bytes of the activations that plan_stack lays out.
template <class S, class A>
std::int64_t stack_bytes(std::int64_t tokens, std::int64_t source_tokens, bool keep, bool cached) {
  Slab size;
  plan_stack<S, A>(size, tokens, source_tokens, keep, cached);
  return size.used();
}
/// Bytes that the backward of a stack's blocks needs besides, one block at a time.
template <class S, class A>
std::int64_t backward_bytes(std::int64_t tokens, std::int64_t source_tokens) {
  std::int64_t most = 0;
  for_each_kind<S>([&]<class L, int>() {
    Slab size;
    plan_block_gradients<L, A>(size, tokens, source_tokens);
    most = std::max(most, size.used());
  });
  return most;
}

/// The activations of a pass in the memory of `memory`, which grows to what they need.
template <class S, class A, class Device>
StackActivations<A> stack_activations(Device& on, PassMemory<Device>& memory, std::int64_t tokens,
                                      std::int64_t source_tokens, bool keep, bool cached) {
  Slab slab(memory.bytes(on, stack_bytes<S, A>(tokens, source_tokens, keep, cached)));
  return plan_stack<S, A>(slab, tokens, source_tokens, keep, cached);
}

/// One stack of a model with the weights and tables it reads.
template <class S, class Device, class W>
class Stack {
  static_assert(supports<Device, S, Use::inference, W>,
                "the device must have every operation that the model's layers need: see the errors before this one.");

 public:
  using A = activation_t<Device, W>;
  static constexpr int d_model = S::dims.d_model;
  Stack(Device& on, std::string_view name, const StackView<const W>& weights, const W* token_table,
        const std::vector<PositionTables<Device>>& tables, const float* position_rows)
      : on_(on), name_(name), w_(weights), token_table_(token_table), tables_(tables), position_rows_(position_rows) {}
  /// `name`: of the stack in the parameter table.
  template <class M>
  Stack(const Model<M, Device, W>& model, std::string_view name, const std::vector<PositionTables<Device>>& tables,
        const Buffer<Device, float>& position_rows)
      : Stack(model.device(), name, model.weights().stack(name),
              model.weights().stack("").matrix(Tensor::token_embeddings), tables, position_rows.data()) {}

  /// Token ids to hidden states: a.hidden and a.normed. `cache`: null, or where keys and values are written and read.
  /// per_kind(kind) gives the PassTokens of a kind; cross(layer, activations) may redirect cross-attention's keys and
  /// values.
  template <class Observer, class PerKind, class Cross>
  void forward(const PassArrays<Device, A>& pass, StackActivations<A>& a, KVCache<S, Device, A>* cache,
               const PerKind& per_kind, const Cross& cross, Observer& observer) {
    embed(pass, a);  // [T, d_model]
    observer(Observed<A>{name_, "embedding", -1, a.x, pass.tokens(), d_model});
    for (int layer = 0; layer < S::dims.n_layers; ++layer)
      with_layer<S>(layer, [&]<class L, int kind>() {  // [T, d_model]
        BlockActivations<A> block = a.blocks[static_cast<std::size_t>(a.per_layer ? layer : kind)];
        if (cache) block.k = cache->keys(layer), block.v = cache->values(layer);
        cross(layer, block);
        const PassTokens<A> tokens = per_kind(kind);
        Block<L, Device, W> step(on_, w_, layer, tables_[static_cast<std::size_t>(kind)], tokens, block);
        step.forward();
        observe_block<L>(observer, layer, block, pass.tokens());
      });
    if constexpr (has_final_norm<S>) final_norm(pass.tokens(), a);  // [T, d_model]
    observer(Observed<A>{name_, "final_norm", -1, a.normed, pass.tokens(), d_model});
  }
  /// From dx, the gradient of a.normed, to the gradients of every parameter of the stack (+=); dx ends as that of a.x.
  template <class Observer, class PerKind>
  void backward(const PassArrays<Device, A>& pass, const StackActivations<A>& a, const PerKind& per_kind,
                const StackView<float>& gradients, float* dtoken_table, A* dx, A* dsource, std::byte* scratch,
                Observer& observer) {
    static_assert(supports<Device, S, Use::training, W>,
                  "the device must have every operation that training needs: see the errors before this one.");
    if constexpr (has_final_norm<S>)
      norm_backward<S::norm>(Tensor::ln_final_weight, gradients, a.final_norm, a.hidden, dx, pass.tokens());
    for (int layer = S::dims.n_layers - 1; layer >= 0; --layer)
      with_layer<S>(layer, [&]<class L, int kind>() {
        observer(Observed<A>{name_, "hidden_gradient", layer, dx, pass.tokens(), d_model});
        Slab slab(scratch);
        const PassTokens<A> tokens = per_kind(kind);
        const auto blocks = plan_block_gradients<L, A>(slab, pass.tokens(), tokens.source_tokens);
        const Block<L, Device, W> forward(on_, w_, layer, tables_[static_cast<std::size_t>(kind)], tokens,
                                          a.blocks[static_cast<std::size_t>(layer)]);
        BlockBackward<L, Device, W>(forward, gradients, blocks, dsource).backward(dx);
      });
    observer(Observed<A>{name_, "embedding_gradient", -1, dx, pass.tokens(), d_model});
    embed_backward(pass, a, gradients, dtoken_table, dx);
  }

 private:
  /// x = scale * token row + position row, then the embedding norm.
  void embed(const PassArrays<Device, A>& pass, StackActivations<A>& a) {
    gather_rows(on_, GatherArgs<A, W>{.y = a.raw_embedding,
                                      .table = token_table_,
                                      .index = pass.ids(),
                                      .tokens = pass.tokens(),
                                      .width = d_model,
                                      .scale = S::embedding_scale});
    constexpr auto position = S::position;
    if constexpr (TablePosition<policy_t<S::position>>)
      gather_rows(on_, GatherArgs<A, W>{.y = a.raw_embedding,
                                        .table = w_.matrix(Tensor::position_table),
                                        .index = pass.positions(),
                                        .tokens = pass.tokens(),
                                        .width = d_model,
                                        .offset = position.offset,
                                        .accumulate = true});
    else if constexpr (FormulaPosition<policy_t<S::position>>)
      gather_rows(on_, GatherArgs<A, float>{.y = a.raw_embedding,
                                            .table = position_rows_,
                                            .index = pass.positions(),
                                            .tokens = pass.tokens(),
                                            .width = d_model,
                                            .accumulate = true});
    norm_forward<S::embedding_norm>(Tensor::embedding_norm_weight, a.embedding_norm, a.raw_embedding, a.x,
                                    pass.tokens());
  }
  void embed_backward(const PassArrays<Device, A>& pass, const StackActivations<A>& a,
                      const StackView<float>& gradients, float* dtoken_table, A* dx) {
    if constexpr (has_embedding_norm<S>)
      norm_backward<S::embedding_norm>(Tensor::embedding_norm_weight, gradients, a.embedding_norm, a.raw_embedding, dx,
                                       pass.tokens());
    GatherBackwardArgs<A> args{.dtable = dtoken_table,
                               .dy = dx,
                               .index = pass.ids(),
                               .tokens = pass.tokens(),
                               .width = d_model,
                               .scale = S::embedding_scale};
    gather_rows_backward(on_, args);
    constexpr auto position = S::position;
    if constexpr (TablePosition<policy_t<S::position>>)
      gather_rows_backward(on_, GatherBackwardArgs<A>{.dtable = gradients.matrix(Tensor::position_table),
                                                      .dy = dx,
                                                      .index = pass.positions(),
                                                      .tokens = pass.tokens(),
                                                      .width = d_model,
                                                      .offset = position.offset});
  }
  void final_norm(std::int64_t tokens, StackActivations<A>& a) {
    norm_forward<S::norm>(Tensor::ln_final_weight, a.final_norm, a.hidden, a.normed, tokens);
  }
  template <auto Norm>
  void norm_forward(Tensor weight, const NormStatistics& kept, const A* x, A* y, std::int64_t rows) {
    if constexpr (!std::is_same_v<policy_t<Norm>, NoNorm>)
      norm_rows(on_, norm_form(fixed<Norm>),
                NormArgs<A>{.y = y,
                            .x = x,
                            .gain = w_.vector(weight),
                            .bias = w_.vector(bias_of(weight)),
                            .mean = kept.mean,
                            .scale = kept.scale,
                            .rows = rows,
                            .width = d_model});
  }
  template <auto Norm>
  void norm_backward(Tensor weight, const StackView<float>& gradients, const NormStatistics& kept, const A* x, A* dx,
                     std::int64_t rows) {
    norm_rows_backward(on_, norm_form(fixed<Norm>),
                       NormBackwardArgs<A>{.dx = dx,
                                           .dy = dx,
                                           .x = x,
                                           .gain = w_.vector(weight),
                                           .mean = kept.mean,
                                           .scale = kept.scale,
                                           .dgain = gradients.vector(weight),
                                           .dbias = gradients.vector(bias_of(weight)),
                                           .rows = rows,
                                           .width = d_model});
  }
  template <class L, class Observer>
  void observe_block(Observer& observer, int layer, const BlockActivations<A>& a, std::int64_t tokens) {
    observer(Observed<A>{name_, "attention", layer, a.attended, tokens, L::q_width});
    observer(Observed<A>{name_, "feed_forward", layer, a.activated, tokens, L::dims.d_ff});
    observer(Observed<A>{name_, "hidden", layer, a.y, tokens, d_model});
  }

  Device& on_;
  std::string_view name_;
  StackView<const W> w_;
  const W* token_table_;
  const std::vector<PositionTables<Device>>& tables_;
  const float* position_rows_;
};

}  // namespace typeformer
