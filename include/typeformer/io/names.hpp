/// Which tensor of a file is which parameter: names by container and architecture, and what is done to the numbers.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "typeformer/core/error.hpp"
#include "typeformer/model/parameters.hpp"

namespace typeformer::inline TYPEFORMER_ABI::io {

/// What turns a file's numbers into a parameter's. GGUF of the llama architecture stores the rows of q and k permuted
/// for adjacent pairs ([heads, head_dim/2, 2] instead of [heads, 2, head_dim/2]); GGUF of Gemma stores 1 + w.
enum class Transform { none, pair_rows_to_halves, subtract_one };

/// The file's name of a parameter, and its transform.
struct TensorName {
  std::string name;
  Transform transform = Transform::none;
};

namespace detail {

using NameTable = std::span<const std::pair<std::string_view, std::string_view>>;

/// `stem` + ".weight" or ".bias" by a table of stems; empty when the table has none.
inline std::string by_table(NameTable table, std::string_view suffix) {
  const auto dot = suffix.rfind('.');
  const std::string_view stem = suffix.substr(0, dot), kind = suffix.substr(dot);
  for (const auto& [ours, theirs] : table)
    if (stem == ours) return std::string(theirs).append(kind);
  return {};
}

inline constexpr std::pair<std::string_view, std::string_view> hf_llama[] = {
    {"ln1", "input_layernorm"},          {"ln2", "post_attention_layernorm"}, {"attn.q_proj", "self_attn.q_proj"},
    {"attn.k_proj", "self_attn.k_proj"}, {"attn.v_proj", "self_attn.v_proj"}, {"attn.output_proj", "self_attn.o_proj"},
    {"attn.q_norm", "self_attn.q_norm"}, {"attn.k_norm", "self_attn.k_norm"}, {"ffn.gate_proj", "mlp.gate_proj"},
    {"ffn.up_proj", "mlp.up_proj"},      {"ffn.down_proj", "mlp.down_proj"}};
inline constexpr std::pair<std::string_view, std::string_view> hf_gemma_norms[] = {
    {"ln1_post", "post_attention_layernorm"},
    {"ln2", "pre_feedforward_layernorm"},
    {"ln2_post", "post_feedforward_layernorm"}};

inline TensorName hf_decoder_name(const Parameter& p, bool gemma) {
  if (p.tensor == Tensor::token_embeddings) return {"model.embed_tokens.weight"};
  if (p.tensor == Tensor::head_weight) return {"lm_head.weight"};
  if (p.tensor == Tensor::ln_final_weight) return {"model.norm.weight"};
  std::string name = gemma ? by_table(hf_gemma_norms, p.suffix) : "";
  if (name.empty()) name = by_table(hf_llama, p.suffix);
  return {name.empty() ? "" : "model.layers." + std::to_string(p.layer) + "." + name};
}

/// T5: attention, cross-attention and feed-forward are layers 0, 1 and 2 (without cross-attention 0 and 1) of a block.
inline TensorName hf_t5_name(const Parameter& p, bool gated) {
  if (p.tensor == Tensor::token_embeddings) return {"shared.weight"};
  if (p.tensor == Tensor::head_weight) return {"lm_head.weight"};
  const std::string stack(p.stack);
  if (p.tensor == Tensor::ln_final_weight) return {stack + "final_layer_norm.weight"};
  if (p.tensor == Tensor::relative_bias)
    return {stack + "block.0.layer.0.SelfAttention.relative_attention_bias.weight"};
  const std::string feed_forward = p.stack == "encoder." ? "layer.1." : "layer.2.";
  static constexpr std::pair<std::string_view, std::string_view> attention[] = {
      {"ln1", "layer.0.layer_norm"},
      {"ln_cross", "layer.1.layer_norm"},
      {"attn.q_proj", "layer.0.SelfAttention.q"},
      {"attn.k_proj", "layer.0.SelfAttention.k"},
      {"attn.v_proj", "layer.0.SelfAttention.v"},
      {"attn.output_proj", "layer.0.SelfAttention.o"},
      {"cross.q_proj", "layer.1.EncDecAttention.q"},
      {"cross.k_proj", "layer.1.EncDecAttention.k"},
      {"cross.v_proj", "layer.1.EncDecAttention.v"},
      {"cross.output_proj", "layer.1.EncDecAttention.o"}};
  const std::pair<std::string_view, std::string_view> network[] = {
      {"ln2", "layer_norm"},
      {"ffn.gate_proj", "DenseReluDense.wi_0"},
      {"ffn.up_proj", gated ? "DenseReluDense.wi_1" : "DenseReluDense.wi"},
      {"ffn.down_proj", "DenseReluDense.wo"}};
  std::string name = by_table(attention, p.suffix);
  if (name.empty()) name = by_table(network, p.suffix), name = name.empty() ? "" : feed_forward + name;
  return {name.empty() ? "" : stack + "block." + std::to_string(p.layer) + "." + name};
}

inline constexpr std::pair<std::string_view, std::string_view> gguf_block[] = {{"ln1", "attn_norm"},
                                                                               {"ln2", "ffn_norm"},
                                                                               {"attn.q_proj", "attn_q"},
                                                                               {"attn.k_proj", "attn_k"},
                                                                               {"attn.v_proj", "attn_v"},
                                                                               {"attn.output_proj", "attn_output"},
                                                                               {"attn.q_norm", "attn_q_norm"},
                                                                               {"attn.k_norm", "attn_k_norm"},
                                                                               {"ln1_post", "post_attention_norm"},
                                                                               {"ln2_post", "post_ffw_norm"},
                                                                               {"ffn.gate_proj", "ffn_gate"},
                                                                               {"ffn.up_proj", "ffn_up"},
                                                                               {"ffn.down_proj", "ffn_down"}};

inline TensorName gguf_name(const Parameter& p, bool gemma) {
  const bool norm = p.suffix.find("ln") == 0 || p.suffix.find("_norm") != std::string_view::npos;
  const Transform of_norm = gemma && norm ? Transform::subtract_one : Transform::none;
  if (p.tensor == Tensor::token_embeddings) return {"token_embd.weight"};
  if (p.tensor == Tensor::head_weight) return {"output.weight"};
  if (p.tensor == Tensor::ln_final_weight) return {"output_norm.weight", of_norm};
  const std::string name = by_table(gguf_block, p.suffix);
  const bool rotates = p.tensor == Tensor::q_weight || p.tensor == Tensor::k_weight || p.tensor == Tensor::q_bias ||
                       p.tensor == Tensor::k_bias;
  return {name.empty() ? "" : "blk." + std::to_string(p.layer) + "." + name,
          rotates && !gemma ? Transform::pair_rows_to_halves : of_norm};
}

/// Tensors that files of a family carry beside the parameters: constants that old versions wrote, T5's copies of the
/// embedding table, and a bias table that T5's first checkpoints hold and no T5 reads.
inline bool is_harmless_tensor(std::string_view name, std::string_view family) {
  if (family == "t5")
    return name == "encoder.embed_tokens.weight" || name == "decoder.embed_tokens.weight" ||
           name == "decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight";
  return name.ends_with(".rotary_emb.inv_freq");
}

/// Under what other names a file may hold the embedding table, when it is the head too: writers that store shared
/// memory once keep one name of several.
inline std::span<const std::string_view> names_of_tied_table(std::string_view family, bool gguf) {
  static constexpr std::string_view decoder[] = {"lm_head.weight"};
  static constexpr std::string_view t5[] = {"encoder.embed_tokens.weight", "decoder.embed_tokens.weight",
                                            "lm_head.weight"};
  if (gguf) return {};
  return family == "t5" ? std::span<const std::string_view>(t5) : decoder;
}

}  // namespace detail

/// The file's name of parameter p. `family`: as FileArchitecture tells. Throws Error when the family has no such
/// tensor.
inline TensorName file_name(const Parameter& p, std::string_view family, bool gguf, bool gated) {
  const TensorName result = gguf             ? detail::gguf_name(p, family == "gemma3")
                            : family == "t5" ? detail::hf_t5_name(p, gated)
                                             : detail::hf_decoder_name(p, family == "gemma3");
  if (result.name.empty())
    throw Error("load", p.name(), "a tensor that files of the family " + std::string(family) + " have",
                "none of that kind");
  return result;
}

}  // namespace typeformer
