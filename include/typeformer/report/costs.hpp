/// What a composition costs, by formula: FLOPs, bytes, and their ratio, which says whether arithmetic or memory is the
/// limit.
///
///   FLOPs of a token = 2 * elements of the matrices it passes + 4 * q_width * keys, summed over the layers
///   (a product and a sum per weight; per key and channel the same for the score and for the value)
///   bytes of a pass  = weights read + keys and values read or written
///
/// Memory of activations is what the passes of model/ lay out before anything runs.
#pragma once
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "typeformer/core/error.hpp"
#include "typeformer/model/head.hpp"
#include "typeformer/model/layers.hpp"
#include "typeformer/model/parameters.hpp"

namespace typeformer::inline TYPEFORMER_ABI {

/// What the costs are reckoned for.
struct CostOptions {
  int context = 0;           ///< positions of a prompt, and before a decoded token; 0: the model's max_seq
  int weight_bytes = 4;      ///< of one element of a matrix
  int cache_bytes = 4;       ///< of one element of a key or value
  int activation_bytes = 4;  ///< of one activation: 4 or 2 (bf16, on CUDA beside weights in bf16)
  int chunk = 512;           ///< tokens per pass of a prompt: rings hold reach + chunk - 1 positions (StateOptions)
  /// Numbers of the logits that a loss makes at a time: cpu::Device::loss_logits, or another device's.
  std::int64_t loss_logits = std::int64_t{4} << 20;
};

/// The costs of one stack. FLOPs in operations, memory in bytes. Keys counted are those that the mask's span says a
/// query may see; every key, when a mask has no span, as none is skipped then.
struct StackCosts {
  int context = 0;
  std::int64_t layer_matrices = 0;   ///< elements of the matrices that each token passes
  std::int64_t head_matrix = 0;      ///< of the head: each decoded token, the last one of a prompt
  std::int64_t source_matrices = 0;  ///< that each token of the encoder passes in a decoder (keys and values)
  double prefill_attention = 0;      ///< FLOPs of attention in a whole prompt of `context` tokens
  double decode_attention = 0;       ///< FLOPs of attention of the token after context - 1 others
  std::int64_t weight_bytes = 0;     ///< that a pass reads
  std::int64_t kv_bytes_per_token = 0;
  std::int64_t kv_bytes_held = 0;              ///< at full context; windows keep rings
  std::int64_t kv_bytes_read = 0;              ///< by the token after context - 1 others
  int ring_layers = 0;                         ///< layers that keep a ring
  std::int64_t source_kv_bytes_per_token = 0;  ///< of a decoder, for each token of the encoder
  int pass_tokens = 0;               ///< of the widest pass of inference: a chunk of a prompt; an encoder's source
  std::int64_t pass_memory = 0;      ///< bytes of its activations and of one sequence's logits
  std::int64_t training_memory = 0;  ///< bytes of loss_and_gradients for one sequence of `context` tokens: activations
                                     ///< and their gradients, a piece of the logits; not weights and their gradients

  double prefill_flops() const {
    return 2. * (static_cast<double>(layer_matrices) * context + static_cast<double>(head_matrix)) + prefill_attention;
  }
  double decode_flops() const { return 2. * static_cast<double>(layer_matrices + head_matrix) + decode_attention; }
  /// Forward and backward of a sequence with a label at every position: three times the forward (the backward makes two
  /// products of every one).
  double training_flops() const {
    return 3. * (2. * static_cast<double>(layer_matrices + head_matrix) * context + prefill_attention);
  }
  /// FLOPs per byte.
  double prefill_intensity() const {
    return prefill_flops() / (static_cast<double>(weight_bytes) + static_cast<double>(kv_bytes_per_token) * context);
  }
  double decode_intensity() const {
    return decode_flops() / static_cast<double>(weight_bytes + kv_bytes_read + kv_bytes_per_token);
  }
};

namespace detail {

/// Keys that the query at `position` of `length` may see, as the mask's span says.
template <class Mask>
int seen_keys(const Mask& mask, int position, int length) {
  const KeySpan span = key_span(mask, position, position, length, MaskData{});
  return std::max(0, std::min(span.end, length) - std::max(span.begin, 0));
}

/// Adds what `layers` layers of composition L cost. `source`: tokens of the encoder.
template <class L>
void add_layer_costs(StackCosts& costs, const CostOptions& options, std::int64_t layers, int source) {
  constexpr std::int64_t d = L::dims.d_model, kv = 2 * L::kv_width;
  const double flops_per_key = 4. * L::q_width * static_cast<double>(layers);
  const std::int64_t kv_bytes = layers * kv * options.cache_bytes;
  const int n = costs.context, last = seen_keys(L::mask, n - 1, n);
  costs.layer_matrices += layers * d * (L::qkv_width + L::q_width + L::ffn_in_width + L::dims.d_ff);
  for (int position = 0; position < n; ++position)
    costs.prefill_attention += flops_per_key * seen_keys(L::mask, position, n);
  costs.decode_attention += flops_per_key * last;
  if constexpr (L::cross_attention) {
    costs.layer_matrices += layers * 2 * d * L::q_width;
    costs.source_matrices += layers * d * kv;
    costs.source_kv_bytes_per_token += kv_bytes;
    costs.prefill_attention += flops_per_key * n * source;
    costs.decode_attention += flops_per_key * source;
    costs.kv_bytes_read += kv_bytes * source;
  }
  if constexpr (L::has_head) {  // only what generates has a cache
    const int back = reach(L::mask), slots = back ? std::min(n, back + std::min(options.chunk, n) - 1) : n;
    costs.kv_bytes_per_token += kv_bytes;
    costs.kv_bytes_held += kv_bytes * slots;
    costs.kv_bytes_read += kv_bytes * std::min(last, slots);
    if (back) costs.ring_layers += static_cast<int>(layers);
  }
}

/// Adds the memory of passes through stack S with activations of type A. `source`: tokens of the encoder.
template <class S, class A>
void add_memory(StackCosts& costs, const CostOptions& options, int source) {
  const int n = costs.context;
  costs.pass_tokens = S::has_head ? std::min(options.chunk, n) : n;
  costs.pass_memory = stack_bytes<S, A>(costs.pass_tokens, 0, false, S::has_head);
  costs.training_memory = stack_bytes<S, A>(n, source, true, false) + backward_bytes<S, A>(n, source) +
                          std::int64_t{sizeof(A)} * n * S::dims.d_model;
  if constexpr (S::has_head) {
    costs.pass_memory += std::int64_t{sizeof(A)} * S::dims.d_model + std::int64_t{sizeof(float)} * S::dims.vocab;
    costs.training_memory +=
        std::int64_t{sizeof(A)} * loss_chunk(n, S::dims.vocab, options.loss_logits) * S::dims.vocab;
  }
}

/// Bytes of the weights that a pass through one stack reads: not the tables of which it gathers rows, nor what makes a
/// decoder's keys and values of the source.
template <class M>
std::int64_t weight_bytes_read(std::string_view stack, bool tied, int weight_bytes) {
  std::int64_t bytes = 0;
  for (const Parameter& p : parameters<M>) {
    const bool head = p.tensor == Tensor::head_weight || p.tensor == Tensor::head_bias ||
                      (p.tensor == Tensor::token_embeddings && tied);
    const bool gathered = p.tensor == Tensor::position_table || (p.tensor == Tensor::token_embeddings && !tied);
    const bool of_source = p.tensor == Tensor::cross_k_weight || p.tensor == Tensor::cross_v_weight ||
                           p.tensor == Tensor::cross_k_bias || p.tensor == Tensor::cross_v_bias;
    if (gathered || of_source || (p.stack != stack && !(head && stack != "encoder."))) continue;
    bytes += p.size() * (p.matrix ? weight_bytes : static_cast<int>(sizeof(float)));
  }
  return bytes;
}

inline void check_cost_options(const CostOptions& o) {
  const auto require = [](bool holds, const char* field, const char* expected, std::int64_t got) {
    if (!holds) throw Error("costs", field, expected, std::to_string(got));
  };
  require(o.context >= 0, "context", "0 or more", o.context);
  require(o.weight_bytes > 0, "weight_bytes", "1 or more", o.weight_bytes);
  require(o.cache_bytes > 0, "cache_bytes", "1 or more", o.cache_bytes);
  require(o.activation_bytes == 2 || o.activation_bytes == 4, "activation_bytes", "2 or 4", o.activation_bytes);
  require(o.chunk > 0, "chunk", "1 or more", o.chunk);
  require(o.loss_logits > 0, "loss_logits", "1 or more", o.loss_logits);
}

/// The costs of stack S of model M. `source`: tokens of the encoder.
template <class M, class S>
StackCosts stack_costs(std::string_view stack, CostOptions options, int source) {
  check_cost_options(options);
  StackCosts costs;
  costs.context = options.context > 0 ? options.context : S::dims.max_seq;
  if constexpr (S::has_head) costs.head_matrix = std::int64_t{S::dims.vocab} * S::dims.d_model;
  for_each_kind<S>([&]<class L, int kind>() {
    std::int64_t layers = 0;
    for (int layer = 0; layer < S::dims.n_layers; ++layer) layers += S::layer_kind(layer) == kind;
    add_layer_costs<L>(costs, options, layers, source);
  });
  costs.weight_bytes = weight_bytes_read<M>(stack, S::has_head && S::tied, options.weight_bytes);
  if (options.activation_bytes == 2)
    add_memory<S, bf16>(costs, options, source);
  else
    add_memory<S, float>(costs, options, source);
  return costs;
}

}  // namespace detail

/// The costs of a model of one stack. Throws Error for options that no model has.
template <Composition M>
StackCosts costs(const CostOptions& options = {}) {
  return detail::stack_costs<M, M>("", options, 0);
}
/// The costs of the encoder: of a source of `context` tokens.
template <EncoderDecoderComposition M>
StackCosts encoder_costs(const CostOptions& options = {}) {
  return detail::stack_costs<M, typename M::Encoder>("encoder.", options, 0);
}
/// The costs of the decoder, beside a source as long as its own context.
template <EncoderDecoderComposition M>
StackCosts decoder_costs(const CostOptions& options = {}) {
  using Decoder = typename M::Decoder;
  return detail::stack_costs<M, Decoder>("decoder.", options,
                                         options.context > 0 ? options.context : Decoder::dims.max_seq);
}

}  // namespace typeformer
