/// config.json of HuggingFace folders, by model_type, as an Architecture. What a key means is transformers' modeling
/// code.
#pragma once
#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "typeformer/io/config_fields.hpp"
#include "typeformer/io/file_architecture.hpp"
#include "typeformer/report/architecture.hpp"

namespace typeformer::inline TYPEFORMER_ABI::io {

namespace detail {

/// Keys that change nothing of what the network computes from ids and weights.
inline const std::set<std::string, std::less<>> harmless_keys{"architectures",
                                                              "auto_map",
                                                              "model_type",
                                                              "torch_dtype",
                                                              "dtype",
                                                              "transformers_version",
                                                              "_name_or_path",
                                                              "use_cache",
                                                              "initializer_range",
                                                              "initializer_factor",
                                                              "bos_token_id",
                                                              "eos_token_id",
                                                              "pad_token_id",
                                                              "decoder_start_token_id",
                                                              "attention_dropout",
                                                              "dropout_rate",
                                                              "classifier_dropout",
                                                              "output_attentions",
                                                              "output_hidden_states",
                                                              "return_dict",
                                                              "task_specific_params",
                                                              "output_past",
                                                              "is_llama_config",
                                                              "transformers.js_config",
                                                              "cache_implementation",
                                                              "unsloth_fixed",
                                                              "_attn_implementation_autoset",
                                                              "gradient_checkpointing",
                                                              "problem_type",
                                                              "id2label",
                                                              "label2id"};

inline int positive(ConfigFields& config, std::string_view key) {
  const int value = config.integer(key);
  if (value < 1) config.refuse(key, "a positive number", value);
  return value;
}

/// RoPE of one kind of layer: its own object (transformers 5) or top-level keys (files of the hub).
inline void read_scaling(ConfigFields& rope, RopeScaling& scaling) {
  using Kind = RopeScaling::Kind;
  if (!rope.has("rope_type") && !rope.has("type")) rope.refuse("rope_type", "the name of a scaling", nullptr);
  const std::string type = rope.has("rope_type") ? rope.text("rope_type") : rope.text("type");
  rope.only("type", type, "as rope_type says");
  if (type == "default") return;
  if (type != "linear" && type != "llama3" && type != "yarn")
    rope.refuse("rope_type", "default, linear, llama3 or yarn", type);
  scaling.factor = rope.real("factor");
  if (!(scaling.factor >= 1.f)) rope.refuse("factor", "a number of 1 or more", scaling.factor);
  scaling.kind = type == "linear" ? Kind::linear : type == "llama3" ? Kind::llama3 : Kind::yarn;
  if (scaling.kind == Kind::linear) return;
  scaling.original_context = positive(rope, "original_max_position_embeddings");
  if (scaling.kind == Kind::llama3) {
    scaling.low = rope.real("low_freq_factor");
    scaling.high = rope.real("high_freq_factor");
  } else {
    scaling.beta_fast = rope.real_or("beta_fast", 32.f);
    scaling.beta_slow = rope.real_or("beta_slow", 1.f);
  }
}
/// A number that may stand in an inner object, in the outer one, or equal in both; `outer_value`: what the outer said.
inline float also_in(ConfigFields& outer, ConfigFields& inner, std::string_view key, float outer_value) {
  const float value = inner.real_or(key, outer_value);
  if (outer.has(key) && value != outer_value) inner.refuse(key, "the same number as above it", inner.value(key));
  return value;
}
inline PositionInfo read_rope(ConfigFields& config, float usual_theta) {
  PositionInfo position{.kind = "RoPE"};
  const std::string_view key = config.has("rope_parameters") ? "rope_parameters" : "rope_scaling";
  position.theta = config.real_or("rope_theta", usual_theta);
  constexpr std::string_view whole =
      "these models turn whole heads, and transformers reads the factor for some scalings only";
  config.only("partial_rotary_factor", 1., whole);
  if (!config.has(key)) return position;
  ConfigFields rope = config.object(key);
  if (key == "rope_parameters") position.theta = also_in(config, rope, "rope_theta", position.theta);
  rope.only("partial_rotary_factor", 1., whole);
  read_scaling(rope, position.scaling);
  rope.finish({});
  return position;
}

/// Dims, heads, norm and tie of the decoders that name them as Llama does.
inline StackInfo read_llama_like(ConfigFields& config) {
  StackInfo s;
  s.dims = {.vocab = positive(config, "vocab_size"),
            .d_model = positive(config, "hidden_size"),
            .n_layers = positive(config, "num_hidden_layers"),
            .d_ff = positive(config, "intermediate_size"),
            .max_seq = positive(config, "max_position_embeddings")};
  s.heads = positive(config, "num_attention_heads");
  s.kv_heads = config.integer_or("num_key_value_heads", s.heads);
  s.head_dim = config.integer_or("head_dim", s.dims.d_model / s.heads);
  if (s.head_dim < 1) config.refuse("head_dim", "a positive number", s.head_dim);
  s.score_scale = dot_product_scale(s.head_dim);
  s.norm = {"RMSNorm", config.real("rms_norm_eps"), Gain::weight, false};
  return s;
}

inline StackInfo read_llama(ConfigFields& config) {
  StackInfo s = read_llama_like(config);
  const std::string activation = config.text_or("hidden_act", "silu");
  if (activation != "silu") config.refuse("hidden_act", "silu, as a Llama has", activation);
  s.activation = "SwiGLU";
  s.position = read_rope(config, 1e4f);
  s.layout = "PreNorm{}";
  s.biases.qkv = s.biases.output = config.flag_or("attention_bias", false);
  s.biases.feed_forward = config.flag_or("mlp_bias", false);
  s.tied = config.flag_or("tie_word_embeddings", false);
  config.only("pretraining_tp", 1, "tensor-parallel slices change the order of sums");
  config.only("rope_interleaved", false, "rows of q and k in a folder are ordered for halves");
  return s;
}

/// The layers with a window: the first `locals` of every `period`, as layer_types says, or without it the pattern's
/// length. (transformers writes a default length beside other layer_types, and reads it only without them.)
inline LocalInfo read_pattern(ConfigFields& config, int n_layers) {
  LocalInfo local;
  local.period = 6;
  bool told = false;
  for (const std::string_view key : {"sliding_window_pattern", "_sliding_window_pattern"}) {
    if (!config.has(key)) continue;
    const int period = positive(config, key);
    if (told && period != local.period && !config.has("layer_types"))
      config.refuse(key, std::to_string(local.period) + ", as its twin", period);
    local.period = period;
    told = true;
  }
  local.locals = local.period - 1;
  if (config.has("layer_types")) {
    const auto& types = config.value("layer_types");
    if (!types.is_array() || types.size() != static_cast<std::size_t>(n_layers))
      config.refuse("layer_types", "one type per layer", types);
    const auto full = std::find(types.begin(), types.end(), "full_attention");
    const int sliding = static_cast<int>(full - types.begin());  // before the first full one
    local.period = 6, local.locals = 5;
    if (full != types.end())
      local.period = sliding + 1, local.locals = sliding;
    else if (n_layers >= local.period)  // sliding ones alone
      local.period = local.locals = 1;
    for (int layer = 0; layer < n_layers; ++layer)
      if (types[static_cast<std::size_t>(layer)] !=
          (layer % local.period < local.locals ? "sliding_attention" : "full_attention"))
        config.refuse("layer_types", "equal runs of sliding_attention with one full_attention after each", types);
  }
  return local;
}

inline StackInfo read_gemma3(ConfigFields& config) {
  StackInfo s = read_llama_like(config);
  s.norm.gain = Gain::one_plus;
  const std::string activation = config.text_or("hidden_activation", "gelu_pytorch_tanh");
  if (activation != "gelu_pytorch_tanh")
    config.refuse("hidden_activation", "gelu_pytorch_tanh, as a Gemma has", activation);
  s.activation = "GeGLUTanh";
  s.layout = "DoubleNorm{}";
  s.qk_norm = {s.norm, QKWidth::head, false};
  s.score_scale = dot_product_scale(double{config.real_or("query_pre_attn_scalar", 256.f)});
  s.tied = config.flag_or("tie_word_embeddings", true);
  s.embedding_scale = EmbeddingScale{}.of(s.dims.d_model);
  s.final_softcap = config.real_or("final_logit_softcapping", 0.f);
  config.only("attn_logit_softcapping", nullptr, "transformers ignores it for Gemma 3");
  config.only("use_bidirectional_attention", false, "a decoder looks back only");
  s.biases.qkv = s.biases.output = config.flag_or("attention_bias", false);
  LocalInfo local = read_pattern(config, s.dims.n_layers);
  local.mask = {"SlidingWindow", positive(config, "sliding_window")};
  if (config.has("rope_parameters")) {
    ConfigFields rope = config.object("rope_parameters");
    const auto of = [&](std::string_view type, float usual) {
      ConfigFields own = rope.object(type);
      PositionInfo position{.kind = "RoPE", .theta = own.real_or("rope_theta", usual)};
      read_scaling(own, position.scaling);
      own.finish({});
      return position;
    };
    s.position = of("full_attention", 1e6f);
    local.position = of("sliding_attention", 1e4f);
    rope.finish({});
  } else {
    s.position = read_rope(config, 1e6f);
    local.position = {.kind = "RoPE", .theta = config.real_or("rope_local_base_freq", 1e4f)};
  }
  s.local = local;
  return s;
}

/// T5's stacks differ in their layers, their direction and their head. `own_head`: the file holds an lm_head.weight.
inline Architecture read_t5(ConfigFields& config, bool own_head) {
  StackInfo s;
  s.dims = {.vocab = positive(config, "vocab_size"),
            .d_model = positive(config, "d_model"),
            .n_layers = positive(config, "num_layers"),
            .d_ff = positive(config, "d_ff"),
            .max_seq = config.integer_or("n_positions", 512)};
  s.heads = s.kv_heads = positive(config, "num_heads");
  s.head_dim = positive(config, "d_kv");
  s.score_scale = 1.f;
  s.norm = {"RMSNorm", config.real_or("layer_norm_epsilon", 1e-6f), Gain::weight, false};
  const std::string network = config.text_or("feed_forward_proj", "relu");
  if (network != "relu" && network != "gated-gelu") config.refuse("feed_forward_proj", "relu or gated-gelu", network);
  const bool gated = network == "gated-gelu";
  s.activation = gated ? "GeGLUTanh" : "ReLU";
  config.only("is_gated_act", gated, "as feed_forward_proj says");
  config.only("dense_act_fn", gated ? "gelu_new" : "relu", "as feed_forward_proj says");
  config.only("is_encoder_decoder", true, "a T5 has both stacks");
  config.only("is_decoder", false, "a T5 has both stacks");
  s.position = {.kind = "T5Buckets",
                .buckets = positive(config, "relative_attention_num_buckets"),
                .max_distance = config.integer_or("relative_attention_max_distance", 128)};
  StackInfo encoder = s;
  encoder.position.bidirectional = true;
  encoder.mask.kind = "Bidirectional";
  encoder.has_head = false;
  s.dims.n_layers = config.integer_or("num_decoder_layers", s.dims.n_layers);
  // Files of the hub say by tie_word_embeddings whether the decoder's output is scaled; transformers 5 writes true for
  // every T5 and says it by scale_decoder_outputs.
  const bool tie = config.flag_or("tie_word_embeddings", true);
  const bool scaled = config.flag_or("scale_decoder_outputs", tie);
  s.tied = tie && (scaled || !own_head);
  s.logit_scale = scaled ? LogitScale{}.of(s.dims.d_model) : 1.f;
  return {"", s, encoder};
}

}  // namespace detail

/// The network that a config.json describes. `own_head`: the checkpoint holds an lm_head.weight. Throws Error for a
/// model_type without a reader, a value that no composition has, and a key that no reader understands.
inline FileArchitecture read_hf_config(const nlohmann::json& json, bool own_head) {
  ConfigFields config(json, "config.json");
  const std::string type = config.text("model_type");
  FileArchitecture file;
  if (type == "llama") {
    file = {"llama", {"", detail::read_llama(config), std::nullopt}, {}, {}};
  } else if (type == "gemma3_text") {
    file = {"gemma3", {"", detail::read_gemma3(config), std::nullopt}, {}, {}};
  } else if (type == "t5") {
    file = {"t5", detail::read_t5(config, own_head), {}, {}};
  } else {
    config.refuse("model_type", "llama, gemma3_text or t5", type);
  }
  config.finish(detail::harmless_keys);
  file.fields_read = config.read();
  file.fields_ignored = config.ignored();
  return file;
}

}  // namespace typeformer
