/// The tiny HuggingFace models of tests/golden as the judge sees them: configuration and names translated, the inputs,
/// and the tensors that HuggingFace computed.
#pragma once
#include <cmath>
#include <cstddef>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "config.hpp"
#include "safetensors.hpp"
#include "tensor.hpp"

namespace reference {

struct Golden {
  Config config;
  Parameters<double> parameters;
  Batch batch;
  std::map<std::string, Tensor<double>> expected;  ///< golden.safetensors by its own names
  std::map<std::string, std::string> hf_names;     ///< canonical name -> the checkpoint's name
};

using Json = nlohmann::json;

inline std::optional<double> optional_number(const Json& json, const std::string& key) {
  if (!json.contains(key) || json.at(key).is_null()) return std::nullopt;
  return json.at(key).get<double>();
}

inline Activation activation_named(const std::string& name) {
  static const std::map<std::string, Activation> names = {{"relu", Activation::relu},
                                                          {"relu2", Activation::relu2},
                                                          {"gelu", Activation::gelu_erf},
                                                          {"gelu_new", Activation::gelu_tanh},
                                                          {"silu", Activation::silu},
                                                          {"gelu_pytorch_tanh", Activation::gelu_tanh},
                                                          {"quick_gelu", Activation::quick_gelu}};
  return names.at(name);
}

/// `rope_parameters` of transformers 5.
inline Rope rope_of(const Json& json) {
  static const std::map<std::string, RopeScaling> kinds = {{"default", RopeScaling::none},
                                                           {"linear", RopeScaling::linear},
                                                           {"llama3", RopeScaling::llama3},
                                                           {"yarn", RopeScaling::yarn}};
  Rope rope;
  rope.theta = json.at("rope_theta");
  rope.scaling = kinds.at(json.at("rope_type"));
  rope.factor = json.value("factor", 1.0);
  rope.low_frequency = json.value("low_freq_factor", 1.0);
  rope.high_frequency = json.value("high_freq_factor", 4.0);
  rope.original_length = json.value("original_max_position_embeddings", 0.0);
  rope.beta_fast = json.value("beta_fast", 32.0);
  rope.beta_slow = json.value("beta_slow", 1.0);
  rope.attention_factor = optional_number(json, "attention_factor");
  return rope;
}

/// What Llama and Gemma 3 share.
inline Config decoder_config(const Json& json) {
  Config config;
  config.vocab = json.at("vocab_size");
  config.d_model = json.at("hidden_size");
  config.head.tied = json.at("tie_word_embeddings");
  Stack& stack = config.stack;
  stack.norm.eps = json.at("rms_norm_eps");
  stack.attention.heads = json.at("num_attention_heads");
  stack.attention.kv_heads = json.at("num_key_value_heads");
  stack.attention.head_dim = json.at("head_dim");
  const bool bias = json.value("attention_bias", false);
  stack.attention.bias_q = stack.attention.bias_k = stack.attention.bias_v = stack.attention.bias_output = bias;
  stack.ffn.width = json.at("intermediate_size");
  return config;
}

inline Config llama_config(const Json& json) {
  Config config = decoder_config(json);
  config.stack.ffn.activation = activation_named(json.at("hidden_act"));
  config.stack.ffn.bias = json.value("mlp_bias", false);
  const Layer layer{{}, PositionKind::rope, rope_of(json.at("rope_parameters"))};
  config.stack.layers.assign(json.at("num_hidden_layers").get<std::size_t>(), layer);
  return config;
}

inline Config gemma3_config(const Json& json) {
  Config config = decoder_config(json);
  config.embedding_scale = std::sqrt(static_cast<double>(config.d_model));
  config.head.soft_cap = optional_number(json, "final_logit_softcapping");
  Stack& stack = config.stack;
  stack.norm.weight = NormWeight::one_plus;
  stack.placement = Placement::twice;
  stack.attention.scale = 1 / std::sqrt(json.at("query_pre_attn_scalar").get<double>());
  stack.attention.qk_norm = QkNorm{stack.norm, QkWidth::head_dim, false};
  stack.ffn.activation = activation_named(json.at("hidden_activation"));
  for (const std::string type : json.at("layer_types")) {
    Layer layer{{}, PositionKind::rope, rope_of(json.at("rope_parameters").at(type))};
    if (type == "sliding_attention") layer.mask = {MaskKind::sliding, json.at("sliding_window").get<std::size_t>()};
    stack.layers.push_back(layer);
  }
  return config;
}

inline Stack t5_stack(const Json& json, bool encoder) {
  Stack stack;
  stack.norm.eps = json.at("layer_norm_epsilon");
  stack.attention.heads = stack.attention.kv_heads = json.at("num_heads");
  stack.attention.head_dim = json.at("d_kv");
  stack.attention.scale = 1;
  stack.ffn = {json.at("d_ff"), activation_named(json.at("dense_act_fn")), json.at("is_gated_act"), false};
  stack.buckets = {json.at("relative_attention_num_buckets"), json.at("relative_attention_max_distance"), encoder};
  const Layer layer{{encoder ? MaskKind::bidirectional : MaskKind::causal, 0}, PositionKind::buckets, {}};
  stack.layers.assign(json.at(encoder ? "num_layers" : "num_decoder_layers").get<std::size_t>(), layer);
  return stack;
}

/// The head is tied unless the file holds one of its own.
inline Config t5_config(const Json& json, bool own_head) {
  Config config;
  config.vocab = json.at("vocab_size");
  config.d_model = json.at("d_model");
  config.encoder = t5_stack(json, true);
  config.stack = t5_stack(json, false);
  config.head.tied = !own_head;
  if (json.at("scale_decoder_outputs").get<bool>()) {
    config.head.scale = 1 / std::sqrt(static_cast<double>(config.d_model));
  }
  return config;
}

/// `name` with the first pattern of the list that occurs in it replaced; patterns that do not occur change nothing.
inline std::string replaced(std::string name, const std::vector<std::pair<std::string, std::string>>& table) {
  for (const auto& [from, to] : table) {
    const std::size_t at = name.find(from);
    if (at == std::string::npos) continue;
    name.replace(at, from.size(), to);
    break;
  }
  return name;
}

inline std::string llama_name(const std::string& canonical, bool gemma) {
  if (canonical.starts_with("lm_head")) return canonical;
  const std::string before_ffn = gemma ? ".pre_feedforward_layernorm." : ".post_attention_layernorm.";
  return "model." + replaced(canonical, {{"token_embeddings", "embed_tokens"},
                                         {"ln_final", "norm"},
                                         {".ln1_post.", ".post_attention_layernorm."},
                                         {".ln2_post.", ".post_feedforward_layernorm."},
                                         {".ln1.", ".input_layernorm."},
                                         {".ln2.", before_ffn},
                                         {".attn.output_proj.", ".self_attn.o_proj."},
                                         {".attn.", ".self_attn."},
                                         {".ffn.", ".mlp."}});
}

inline std::string t5_name(const std::string& canonical, bool gated) {
  if (canonical.starts_with("lm_head")) return canonical;
  if (canonical == "token_embeddings.weight") return "shared.weight";
  const std::string last = canonical.starts_with("encoder.") ? ".layer.1." : ".layer.2.";
  const std::string ffn = last + "DenseReluDense.";
  const std::string name =
      replaced(canonical, {{"layers.", "block."},
                           {"ln_final", "final_layer_norm"},
                           {"relative_bias", "block.0.layer.0.SelfAttention.relative_attention_bias"}});
  const std::string own = replaced(name, {{".attn.", ".layer.0.SelfAttention."},
                                          {".cross.", ".layer.1.EncDecAttention."},
                                          {".ln1.", ".layer.0.layer_norm."},
                                          {".ln_cross.", ".layer.1.layer_norm."},
                                          {".ln2.", last + "layer_norm."},
                                          {".ffn.gate_proj.", ffn + "wi_0."},
                                          {".ffn.up_proj.", ffn + (gated ? "wi_1." : "wi.")},
                                          {".ffn.down_proj.", ffn + "wo."}});
  return replaced(own, {{"output_proj", "o"}, {"q_proj", "q"}, {"k_proj", "k"}, {"v_proj", "v"}});
}

inline std::vector<int> integers(const Tensor<double>& tensor) {
  std::vector<int> result;
  for (double number : tensor.data) result.push_back(static_cast<int>(number));
  return result;
}

/// Inputs of golden.safetensors; its labels are shifted already.
inline Batch golden_batch(const std::map<std::string, Tensor<double>>& expected) {
  Batch batch;
  for (std::size_t b = 0; expected.count("labels." + std::to_string(b)) > 0; ++b) {
    const std::string number = std::to_string(b);
    Sequence sequence;
    sequence.labels = integers(expected.at("labels." + number));
    const bool t5 = expected.count("encoder.ids." + number) > 0;
    sequence.ids = integers(expected.at((t5 ? "decoder.ids." : "ids.") + number));
    if (t5) sequence.encoder_ids = integers(expected.at("encoder.ids." + number));
    batch.push_back(sequence);
  }
  return batch;
}

/// Everything of one golden folder: Llama, Gemma 3 (text) or T5, chosen by the file's model_type.
inline Golden load_golden(const std::string& folder) {
  const Json json = Json::parse(read_file(folder + "/config.json"));
  const auto stored = read_safetensors(folder + "/model.safetensors");
  const std::string type = json.at("model_type");
  Golden golden;
  golden.expected = read_safetensors(folder + "/golden.safetensors");
  golden.batch = golden_batch(golden.expected);
  if (type == "llama") {
    golden.config = llama_config(json);
  } else if (type == "gemma3_text") {
    golden.config = gemma3_config(json);
  } else if (type == "t5") {
    golden.config = t5_config(json, stored.count("lm_head.weight") > 0);
  } else {
    throw std::runtime_error("reference: no translation for the model type " + type);
  }
  for (const auto& [name, shape] : parameter_shapes(golden.config)) {
    const std::string hf =
        type == "t5" ? t5_name(name, golden.config.stack.ffn.gated) : llama_name(name, type == "gemma3_text");
    if (stored.count(hf) == 0) throw std::runtime_error("reference: " + folder + " has no tensor " + hf);
    golden.hf_names[name] = hf;
    golden.parameters[name] = stored.at(hf);
  }
  return golden;
}

}  // namespace reference
