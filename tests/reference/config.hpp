/// A network described by run-time data: the judge's only notion of an architecture.
#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace reference {

/// layer: (x - mean) / sqrt(variance + eps), biased variance. rms: x / sqrt(mean of squares + eps). identity: x.
enum class NormKind { layer, rms, identity };
/// The factor after normalizing: 1, w, or 1 + w.
enum class NormWeight { none, weight, one_plus };
struct Norm {
  NormKind kind = NormKind::rms;
  NormWeight weight = NormWeight::weight;
  bool bias = false;
  double eps = 1e-5;
};

/// Where norms stand around a sublayer f. pre: x + f(N(x)). post: N(x + f(x)). twice: x + N_post(f(N(x))).
/// sublayer_output: x + N_post(f(x)). parallel_one: x + attention(N(x)) + ffn(N(x)).
/// parallel_two: x + attention(N1(x)) + ffn(N2(x)). N is ln1 / ln_cross / ln2, N_post is ln1_post / ..., ln2_post.
enum class Placement { pre, post, twice, sublayer_output, parallel_one, parallel_two };

enum class Activation { identity, sigmoid, relu, relu2, gelu_erf, gelu_tanh, silu, elu, selu, quick_gelu };

/// down(act(up(x))), or gated: down(act(gate(x)) * up(x)).
struct FeedForward {
  std::size_t width = 0;  ///< d_ff
  Activation activation = Activation::silu;
  bool gated = true;
  bool bias = false;
};

/// Which keys a query sees. sliding: query - window < key <= query. chunked: key <= query in the same chunk of
/// `window`. prefix: causal, and the sequence's first `prefix` tokens are seen by all.
enum class MaskKind { causal, bidirectional, sliding, chunked, prefix };
struct Mask {
  MaskKind kind = MaskKind::causal;
  std::size_t window = 0;
};

/// halves: element i turns with i + r/2. adjacent: 2i with 2i + 1.
enum class Pairs { halves, adjacent };
enum class RopeScaling { none, linear, llama3, yarn };
struct Rope {
  double theta = 1e4;
  double fraction = 1;  ///< share of head_dim that turns
  Pairs pairs = Pairs::halves;
  RopeScaling scaling = RopeScaling::none;
  double factor = 1;
  double original_length = 0;              ///< llama3, yarn
  double low_frequency = 1;                ///< llama3
  double high_frequency = 4;               ///< llama3
  double beta_fast = 32;                   ///< yarn
  double beta_slow = 1;                    ///< yarn
  std::optional<double> attention_factor;  ///< yarn: factor on cos and sin; default 0.1 ln(factor) + 1
};

/// How one layer's self-attention knows positions. buckets: T5's table, one per stack.
enum class PositionKind { none, rope, alibi, buckets };

/// What may differ from layer to layer.
struct Layer {
  Mask mask;
  PositionKind position = PositionKind::rope;
  Rope rope;
};

/// Norm of queries and keys. head_dim: one weight for all heads. per_head: statistics per head, each its own
/// weights. all_heads: statistics over all heads together.
enum class QkWidth { head_dim, per_head, all_heads };
struct QkNorm {
  Norm norm;
  QkWidth width = QkWidth::head_dim;
  bool after_rope = false;
};

struct Attention {
  std::size_t heads = 1;
  std::size_t kv_heads = 1;
  std::size_t head_dim = 0;
  std::optional<double> scale;      ///< default 1 / sqrt(head_dim)
  std::optional<double> soft_cap;   ///< cap * tanh(score / cap), after the scale
  std::optional<double> clamp;      ///< q, k and v to [-clamp, clamp], before the QK-norm
  std::optional<QkNorm> qk_norm;    ///< self-attention only
  bool alibi_before_scale = false;  ///< the ALiBi bias is scaled with the score
  bool bias_q = false, bias_k = false, bias_v = false, bias_output = false;  ///< self- and cross-attention
};

/// T5's relative position buckets.
struct Buckets {
  std::size_t count = 32;
  std::size_t max_distance = 128;
  bool bidirectional = false;
};

/// Positions added to the embeddings. interleaved: sin and cos in turn, exponent 2i/d (the paper). halves: all sines,
/// then all cosines, the same exponents (Marian). spaced_halves: the same order, exponent i / (d/2 - 1) (T2T).
enum class AddedPosition { none, learned, interleaved, halves, spaced_halves };

/// One stack of equal blocks on top of embeddings.
struct Stack {
  std::vector<Layer> layers;
  Norm norm;
  Placement placement = Placement::pre;
  bool final_norm = true;
  Attention attention;
  FeedForward ffn;
  Buckets buckets;
  AddedPosition added_position = AddedPosition::none;
  std::size_t learned_positions = 0;  ///< rows of the table, offset included
  std::size_t position_offset = 0;    ///< position p reads row p + offset
  bool embedding_norm = false;        ///< embedding_norm.*, after the positions
};

/// logits = cap(scale * (W h + b)).
struct Head {
  bool present = true;
  bool tied = true;  ///< W is token_embeddings.weight, else lm_head.weight
  bool bias = false;
  double scale = 1;
  std::optional<double> soft_cap;
};

/// A decoder or encoder alone (`stack`), or an encoder and a decoder (`encoder` and `stack`) that share the token
/// embeddings and whose parameters' names begin with "encoder." and "decoder.".
struct Config {
  std::size_t vocab = 0;
  std::size_t d_model = 0;
  double embedding_scale = 1;
  std::size_t token_types = 0;  ///< rows of token_type_embeddings.weight; 0: none
  Stack stack;
  std::optional<Stack> encoder;
  Head head;
};

/// Cross-entropy: mean over the valid labels of (1 - smoothing) nll + smoothing mean_v(-log p_v) + z_loss (log Z)^2.
struct LossOptions {
  double z_loss = 0;
  double label_smoothing = 0;
};
inline constexpr int ignored_label = -100;

/// One sequence of a ragged batch. labels[t] is what position t should predict (already shifted).
struct Sequence {
  std::vector<int> ids;
  std::vector<int> labels;
  std::vector<int> encoder_ids;  ///< with an encoder
  std::vector<int> types;        ///< token types; empty: all 0
  std::size_t prefix = 0;        ///< MaskKind::prefix
};
using Batch = std::vector<Sequence>;

/// Name and shape of one parameter.
using Shapes = std::vector<std::pair<std::string, std::vector<std::size_t>>>;

inline void add_norm(Shapes& shapes, const Norm& norm, const std::string& name, std::size_t width) {
  if (norm.kind == NormKind::identity) return;
  if (norm.weight != NormWeight::none) shapes.push_back({name + ".weight", {width}});
  if (norm.bias) shapes.push_back({name + ".bias", {width}});
}

inline void add_linear(Shapes& shapes, const std::string& name, std::size_t out, std::size_t in, bool bias) {
  shapes.push_back({name + ".weight", {out, in}});
  if (bias) shapes.push_back({name + ".bias", {out}});
}

inline void add_attention(Shapes& shapes, const Attention& a, const std::string& name, std::size_t d, bool cross) {
  add_linear(shapes, name + ".q_proj", a.heads * a.head_dim, d, a.bias_q);
  add_linear(shapes, name + ".k_proj", a.kv_heads * a.head_dim, d, a.bias_k);
  add_linear(shapes, name + ".v_proj", a.kv_heads * a.head_dim, d, a.bias_v);
  add_linear(shapes, name + ".output_proj", d, a.heads * a.head_dim, a.bias_output);
  if (!a.qk_norm || cross) return;
  const bool shared = a.qk_norm->width == QkWidth::head_dim;
  add_norm(shapes, a.qk_norm->norm, name + ".q_norm", shared ? a.head_dim : a.heads * a.head_dim);
  add_norm(shapes, a.qk_norm->norm, name + ".k_norm", shared ? a.head_dim : a.kv_heads * a.head_dim);
}

/// Norms of one sublayer: `name` before it or around it, `name`_post on its output.
inline void add_sublayer_norms(Shapes& shapes, const Stack& stack, const std::string& name, std::size_t d) {
  if (stack.placement != Placement::sublayer_output) add_norm(shapes, stack.norm, name, d);
  if (stack.placement == Placement::twice || stack.placement == Placement::sublayer_output) {
    add_norm(shapes, stack.norm, name + "_post", d);
  }
}

inline void add_layer(Shapes& shapes, const Stack& stack, const std::string& name, std::size_t d, bool cross) {
  add_sublayer_norms(shapes, stack, name + ".ln1", d);
  add_attention(shapes, stack.attention, name + ".attn", d, false);
  if (cross) {
    add_sublayer_norms(shapes, stack, name + ".ln_cross", d);
    add_attention(shapes, stack.attention, name + ".cross", d, true);
  }
  if (stack.placement != Placement::parallel_one) add_sublayer_norms(shapes, stack, name + ".ln2", d);
  if (stack.ffn.gated) add_linear(shapes, name + ".ffn.gate_proj", stack.ffn.width, d, stack.ffn.bias);
  add_linear(shapes, name + ".ffn.up_proj", stack.ffn.width, d, stack.ffn.bias);
  add_linear(shapes, name + ".ffn.down_proj", d, stack.ffn.width, stack.ffn.bias);
}

inline void add_stack(Shapes& shapes, const Stack& stack, const std::string& prefix, std::size_t d, bool cross) {
  if (stack.added_position == AddedPosition::learned) {
    shapes.push_back({prefix + "position_embeddings.weight", {stack.learned_positions, d}});
  }
  if (stack.embedding_norm) add_norm(shapes, stack.norm, prefix + "embedding_norm", d);
  bool buckets = false;
  for (std::size_t i = 0; i < stack.layers.size(); ++i) {
    add_layer(shapes, stack, prefix + "layers." + std::to_string(i), d, cross);
    buckets = buckets || stack.layers[i].position == PositionKind::buckets;
  }
  if (buckets) shapes.push_back({prefix + "relative_bias.weight", {stack.buckets.count, stack.attention.heads}});
  if (stack.final_norm) add_norm(shapes, stack.norm, prefix + "ln_final", d);
}

/// Every parameter of the network, by canonical name.
inline Shapes parameter_shapes(const Config& config) {
  Shapes shapes = {{"token_embeddings.weight", {config.vocab, config.d_model}}};
  if (config.token_types > 0) shapes.push_back({"token_type_embeddings.weight", {config.token_types, config.d_model}});
  if (config.encoder) add_stack(shapes, *config.encoder, "encoder.", config.d_model, false);
  add_stack(shapes, config.stack, config.encoder ? "decoder." : "", config.d_model, config.encoder.has_value());
  if (config.head.present && !config.head.tied) shapes.push_back({"lm_head.weight", {config.vocab, config.d_model}});
  if (config.head.present && config.head.bias) shapes.push_back({"lm_head.bias", {config.vocab}});
  return shapes;
}

}  // namespace reference
