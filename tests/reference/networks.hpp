/// Tiny networks from all over the design space, each with a batch of unequal sequences and loss options.
#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "config.hpp"
#include "random.hpp"

namespace reference {

struct Network {
  std::string name;
  Config config;
  LossOptions options;
  Batch batch;
};

/// Two equal layers, d_model 8, four heads of 4 on two key/value heads: the starting point of all.
inline Config small_config() {
  Config config;
  config.vocab = 11;
  config.d_model = 8;
  config.head.tied = false;
  config.stack.layers.assign(2, Layer{});
  config.stack.attention.heads = 4;
  config.stack.attention.kv_heads = 2;
  config.stack.attention.head_dim = 4;
  config.stack.ffn.width = 10;
  config.stack.norm.eps = 1e-2;
  return config;
}

inline void set_biases(Stack& stack, bool qkv, bool output, bool ffn) {
  stack.attention.bias_q = stack.attention.bias_k = stack.attention.bias_v = qkv;
  stack.attention.bias_output = output;
  stack.ffn.bias = ffn;
}

inline Config gpt2_like() {
  Config config = small_config();
  config.head.tied = true;
  Stack& stack = config.stack;
  stack.norm = {NormKind::layer, NormWeight::weight, true, 1e-2};
  stack.attention.kv_heads = 4;
  stack.attention.head_dim = 2;
  set_biases(stack, true, true, true);
  stack.ffn = {12, Activation::gelu_tanh, false, true};
  stack.layers.assign(2, Layer{{}, PositionKind::none, {}});
  stack.added_position = AddedPosition::learned;
  stack.learned_positions = 9;
  stack.position_offset = 2;
  return config;
}

inline Config neox_like() {
  Config config = gpt2_like();
  config.head.tied = false;
  config.head.bias = true;
  Stack& stack = config.stack;
  stack.placement = Placement::parallel_two;
  stack.attention.head_dim = 6;
  stack.ffn.activation = Activation::gelu_erf;
  stack.added_position = AddedPosition::none;
  Rope rope;
  rope.theta = 50;
  rope.fraction = 2.0 / 3;
  stack.layers.assign(2, Layer{{}, PositionKind::rope, rope});
  return config;
}

inline Config cohere_like() {
  Config config = small_config();
  config.head.tied = true;
  config.head.scale = 0.25;
  Stack& stack = config.stack;
  stack.placement = Placement::parallel_one;
  stack.norm = {NormKind::layer, NormWeight::weight, false, 1e-2};
  stack.attention.qk_norm = QkNorm{stack.norm, QkWidth::per_head, false};
  Rope rope;
  rope.pairs = Pairs::adjacent;
  rope.theta = 20;
  stack.layers = {{{MaskKind::sliding, 2}, PositionKind::rope, rope}, {{}, PositionKind::none, {}}};
  return config;
}

/// Phi's block; GPT-J's has no biases of q, k, v and the output.
inline Config phi_like(bool attention_biases) {
  Config config = neox_like();
  Stack& stack = config.stack;
  stack.placement = Placement::parallel_one;
  stack.ffn.activation = Activation::gelu_tanh;
  set_biases(stack, attention_biases, attention_biases, true);
  return config;
}

inline Config gemma_like() {
  Config config = small_config();
  config.head.tied = true;
  config.head.soft_cap = 3;
  config.embedding_scale = 2.8284271247461903;
  Stack& stack = config.stack;
  stack.placement = Placement::twice;
  stack.norm.weight = NormWeight::one_plus;
  stack.attention.qk_norm = QkNorm{stack.norm, QkWidth::head_dim, false};
  stack.attention.soft_cap = 2;
  stack.attention.scale = 0.7;
  stack.ffn.activation = Activation::gelu_tanh;
  Rope global;
  global.scaling = RopeScaling::linear;
  global.factor = 8;
  stack.layers = {{{MaskKind::sliding, 3}, PositionKind::rope, {}}, {{}, PositionKind::rope, global}};
  return config;
}

inline Config olmo2_like() {
  Config config = small_config();
  Stack& stack = config.stack;
  stack.placement = Placement::sublayer_output;
  stack.attention.qk_norm = QkNorm{stack.norm, QkWidth::all_heads, false};
  Rope rope;
  rope.scaling = RopeScaling::llama3;
  rope.theta = 100;
  rope.factor = 4;
  rope.original_length = 16;
  stack.layers.assign(2, Layer{{}, PositionKind::rope, rope});
  return config;
}

inline Config olmo1_like() {
  Config config = small_config();
  Stack& stack = config.stack;
  stack.norm = {NormKind::layer, NormWeight::none, false, 1e-2};
  stack.attention.clamp = 0.8;
  stack.attention.qk_norm = QkNorm{{NormKind::rms, NormWeight::none, false, 1e-2}, QkWidth::head_dim, true};
  stack.ffn.activation = Activation::elu;
  Rope rope;
  rope.scaling = RopeScaling::yarn;
  rope.theta = 100;
  rope.factor = 4;
  rope.original_length = 16;
  rope.beta_fast = 2;
  stack.layers.assign(2, Layer{{MaskKind::chunked, 3}, PositionKind::rope, rope});
  return config;
}

inline Config bert_like() {
  Config config = gpt2_like();
  config.token_types = 2;
  config.head.bias = true;
  config.stack.placement = Placement::post;
  config.stack.final_norm = false;
  config.stack.embedding_norm = true;
  config.stack.position_offset = 0;
  config.stack.layers.assign(2, Layer{{MaskKind::bidirectional, 0}, PositionKind::none, {}});
  return config;
}

inline Config bloom_like(bool before_scale) {
  Config config = gpt2_like();
  config.stack.added_position = AddedPosition::none;
  config.stack.embedding_norm = true;
  config.stack.attention.heads = config.stack.attention.kv_heads = 3;
  config.stack.attention.alibi_before_scale = before_scale;
  config.stack.ffn = {12, Activation::relu2, false, true};
  config.stack.layers.assign(2, Layer{{MaskKind::prefix, 0}, PositionKind::alibi, {}});
  return config;
}

inline Config t5_like() {
  Config config = small_config();
  config.head.tied = true;
  config.head.scale = 0.35355339059327373;
  config.stack.attention.scale = 1;
  config.stack.buckets = {6, 5, false};
  config.stack.ffn = {12, Activation::relu, false, false};
  config.stack.layers.assign(2, Layer{{}, PositionKind::buckets, {}});
  config.encoder = config.stack;
  config.encoder->buckets.bidirectional = true;
  config.encoder->ffn = {7, Activation::gelu_erf, true, false};
  config.encoder->layers.assign(3, Layer{{MaskKind::bidirectional, 0}, PositionKind::buckets, {}});
  return config;
}

inline Config first_transformer() {
  Config config = bert_like();
  config.token_types = 0;
  config.embedding_scale = 2.8284271247461903;
  config.stack.embedding_norm = false;
  config.stack.added_position = AddedPosition::interleaved;
  config.encoder = config.stack;
  config.stack.layers.assign(2, Layer{{}, PositionKind::none, {}});
  return config;
}

/// Kinds of gates and of sinusoids, and no norm at all.
inline Config bare(Activation gate, AddedPosition position, Placement placement) {
  Config config = small_config();
  config.stack.norm = {NormKind::identity, NormWeight::none, false, 0};
  config.stack.placement = placement;
  config.stack.added_position = position;
  config.stack.ffn.activation = gate;
  config.stack.ffn.bias = true;
  config.stack.layers.assign(2, Layer{{}, PositionKind::none, {}});
  return config;
}

inline std::vector<Network> networks() {
  std::vector<Network> all;
  const auto add = [&](const std::string& name, const Config& config, LossOptions options = {}) {
    all.push_back({name, config, options, random_batch(config, {6, 1, 4}, 7 + all.size())});
  };
  add("llama, z-loss", small_config(), {1e-2, 0});
  add("gpt2, smoothing", gpt2_like(), {0, 0.1});
  add("neox", neox_like());
  add("cohere", cohere_like());
  add("gemma", gemma_like(), {1e-3, 0.05});
  add("olmo2", olmo2_like());
  add("olmo1", olmo1_like());
  add("bert", bert_like());
  add("bloom", bloom_like(false));
  add("falcon-rw", bloom_like(true));
  add("t5", t5_like());
  add("transformer 2017", first_transformer());
  add("glu", bare(Activation::sigmoid, AddedPosition::halves, Placement::pre));
  add("bilinear", bare(Activation::identity, AddedPosition::spaced_halves, Placement::post));
  add("selu", bare(Activation::selu, AddedPosition::none, Placement::twice));
  add("phi", phi_like(true));
  add("gpt-j", phi_like(false));
  add("quick gelu", bare(Activation::quick_gelu, AddedPosition::none, Placement::parallel_two));
  return all;
}

}  // namespace reference
