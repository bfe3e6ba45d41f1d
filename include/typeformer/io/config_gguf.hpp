/// The metadata of GGUF files, by general.architecture, as an Architecture.
#pragma once
#include <cmath>
#include <set>
#include <string>

#include "typeformer/io/config_hf.hpp"
#include "typeformer/io/gguf.hpp"

namespace typeformer::inline TYPEFORMER_ABI::io {

namespace detail {

/// The keys of one architecture in GGUF metadata, "llama.block_count" and so on.
class GgufFields {
 public:
  GgufFields(const GgufFile& file, std::string architecture) : file_(file), prefix_(std::move(architecture) + ".") {}

  bool has(const std::string& key) const { return file_.entry(prefix_ + key) != nullptr; }
  int integer(const std::string& key) {
    const int value = get<int>(key);
    if (value < 1) refuse(key, "a positive number", std::to_string(value));
    return value;
  }
  int integer_or(const std::string& key, int otherwise) { return has(key) ? integer(key) : otherwise; }
  float real(const std::string& key) { return get<float>(key); }
  float real_or(const std::string& key, float otherwise) { return has(key) ? real(key) : otherwise; }
  std::string text_or(const std::string& key, std::string otherwise) {
    return has(key) ? get<std::string>(key) : std::move(otherwise);
  }
  [[noreturn]] void refuse(const std::string& key, const std::string& expected, const std::string& got) const {
    throw Error("load", prefix_ + key, expected, got);
  }
  /// Every key of this architecture must have been read; general.*, tokenizer.* and quantization notes describe no
  /// network.
  void finish(FileArchitecture& to) const {
    for (const GgufEntry& entry : file_.metadata()) {
      const std::string key(entry.key);
      if (read_.count(key))
        to.fields_read.push_back(key);
      else if (key.starts_with("general.") || key.starts_with("tokenizer.") || key.starts_with("quantize."))
        to.fields_ignored.push_back(key);
      else
        throw Error("load", quote_name(key), "a key that the reader of this architecture understands", "its presence");
    }
  }

 private:
  template <class T>
  T get(const std::string& key) {
    read_.insert(prefix_ + key);
    return file_.get<T>(prefix_ + key);
  }
  const GgufFile& file_;
  std::string prefix_;
  std::set<std::string> read_;
};

/// Rows of the embedding table: the vocabulary. GGUF lists the fastest dimension first; StoredTensor the slowest.
inline int gguf_vocabulary(const GgufFile& file) {
  const StoredTensor* table = file.find_tensor("token_embd.weight");
  if (!table || table->shape.size() != 2 || table->shape[0] > 0x7fffffffu)
    throw Error("load", "token_embd.weight", "a matrix of one row per token",
                table ? "another shape" : "no such tensor");
  return static_cast<int>(table->shape[0]);
}

inline StackInfo read_gguf_common(GgufFields& fields, const GgufFile& file) {
  StackInfo s;
  s.dims = {.vocab = fields.integer_or("vocab_size", gguf_vocabulary(file)),
            .d_model = fields.integer("embedding_length"),
            .n_layers = fields.integer("block_count"),
            .d_ff = fields.integer("feed_forward_length"),
            .max_seq = fields.integer("context_length")};
  if (s.dims.vocab != gguf_vocabulary(file))
    fields.refuse("vocab_size", std::to_string(gguf_vocabulary(file)) + ", the rows of token_embd.weight",
                  std::to_string(s.dims.vocab));
  s.heads = fields.integer("attention.head_count");
  s.kv_heads = fields.integer_or("attention.head_count_kv", s.heads);
  s.head_dim = fields.integer_or("attention.key_length", s.dims.d_model / s.heads);
  if (fields.integer_or("attention.value_length", s.head_dim) != s.head_dim)
    fields.refuse("attention.value_length", std::to_string(s.head_dim) + ", as the keys", "another length");
  s.score_scale = dot_product_scale(s.head_dim);
  s.norm = {"RMSNorm", fields.real("attention.layer_norm_rms_epsilon"), Gain::weight, false};
  s.tied = !file.find_tensor("output.weight");
  return s;
}

inline PositionInfo read_gguf_rope(GgufFields& fields, float usual_theta, int head_dim) {
  PositionInfo position{.kind = "RoPE", .theta = fields.real_or("rope.freq_base", usual_theta)};
  const int width = fields.integer_or("rope.dimension_count", head_dim);
  position.fraction = static_cast<float>(width) / static_cast<float>(head_dim);
  const std::string scaling = fields.text_or("rope.scaling.type", "none");
  if (scaling == "linear") {
    position.scaling.kind = RopeScaling::Kind::linear;
    position.scaling.factor = fields.real("rope.scaling.factor");
  } else if (scaling != "none") {
    fields.refuse("rope.scaling.type", "none or linear", scaling);
  }
  return position;
}

inline StackInfo read_gguf_llama(GgufFields& fields, const GgufFile& file) {
  StackInfo s = read_gguf_common(fields, file);
  s.activation = "SwiGLU";
  s.position = read_gguf_rope(fields, 1e4f, s.head_dim);
  s.layout = "PreNorm{}";
  s.biases.qkv = file.find_tensor("blk.0.attn_q.bias") != nullptr;
  s.biases.output = file.find_tensor("blk.0.attn_output.bias") != nullptr;
  s.biases.feed_forward = file.find_tensor("blk.0.ffn_up.bias") != nullptr;
  if (file.find_tensor("rope_freqs.weight"))
    throw Error("load", "rope_freqs.weight", "no table of RoPE factors (its scaling is not told by the metadata)",
                "one");
  return s;
}

/// The file tells the global base and the window, newer ones the local base; else 1e4, and the pattern 5 : 1, follow
/// from the architecture's name.
inline StackInfo read_gguf_gemma3(GgufFields& fields, const GgufFile& file) {
  StackInfo s = read_gguf_common(fields, file);
  s.norm.gain = Gain::one_plus;
  s.activation = "GeGLUTanh";
  s.layout = "DoubleNorm{}";
  s.qk_norm = {s.norm, QKWidth::head, false};
  s.position = read_gguf_rope(fields, 1e6f, s.head_dim);
  s.embedding_scale = EmbeddingScale{}.of(s.dims.d_model);
  s.final_softcap = fields.real_or("final_logit_softcapping", 0.f);
  if (s.dims.n_layers == 62) s.score_scale = dot_product_scale(double(s.dims.d_model) / s.heads);  // 27B
  s.local = LocalInfo{6,
                      5,
                      {.kind = "RoPE", .theta = fields.real_or("rope.freq_base_swa", 1e4f)},
                      {"SlidingWindow", fields.integer("attention.sliding_window")}};
  return s;
}

}  // namespace detail

/// The network that a GGUF file describes. Throws Error for an architecture without a reader and for keys of the
/// architecture that no reader understands.
inline FileArchitecture read_gguf_config(const GgufFile& file) {
  const auto type = file.get<std::string>("general.architecture");
  detail::GgufFields fields(file, type);
  FileArchitecture result;
  if (type == "llama")
    result = {"llama", {"", detail::read_gguf_llama(fields, file), std::nullopt}, {}, {}};
  else if (type == "gemma3")
    result = {"gemma3", {"", detail::read_gguf_gemma3(fields, file), std::nullopt}, {}, {}};
  else
    throw Error("load", "general.architecture", "llama or gemma3", quote_name(type));
  fields.finish(result);
  return result;
}

}  // namespace typeformer
