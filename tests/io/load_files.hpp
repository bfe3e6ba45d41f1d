/// Checkpoints for the tests of load: golden models as folders that a test may change, and as GGUF files, written by
/// code that shares nothing with the library's readers.
#pragma once
#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "io/container_files.hpp"
#include "model/golden_check.hpp"
#include "typeformer/core/scalar.hpp"
#include "typeformer/cpu.hpp"
#include "typeformer/io.hpp"

namespace load_files {

using namespace typeformer;
using container_files::Folder;
using container_files::raw;
using Json = nlohmann::json;
using Numbers = reference::Tensor<double>;
using Tensors = std::map<std::string, Numbers>;

// --- numbers as bytes -----------------------------------------------------------------------------------------------

/// How a file stores a tensor; ggml's number for it.
enum class Format : std::uint32_t { f32 = 0, f16 = 1, q8_0 = 8, bf16 = 30 };

/// 32 numbers as one scale and 32 signed bytes.
inline std::string q8_block(const double* x) {
  double largest = 0;
  for (int i = 0; i < 32; ++i) largest = std::max(largest, std::fabs(x[i]));
  const f16 scale = from_float<f16>(static_cast<float>(largest / 127));
  std::string bytes = raw(scale.bits);
  for (int i = 0; i < 32; ++i)
    bytes += raw(static_cast<std::int8_t>(to_float(scale) > 0 ? std::lround(x[i] / double{to_float(scale)}) : 0));
  return bytes;
}
inline std::string encode(const Numbers& tensor, Format format) {
  std::string bytes;
  const auto append = [&](const auto& value) { bytes.append(reinterpret_cast<const char*>(&value), sizeof value); };
  for (std::size_t i = 0; i < tensor.size(); i += format == Format::q8_0 ? 32 : 1) {
    const auto value = static_cast<float>(tensor.data[i]);
    if (format == Format::f32) append(value);
    if (format == Format::f16) append(from_float<f16>(value).bits);
    if (format == Format::bf16) append(from_float<bf16>(value).bits);
    if (format == Format::q8_0) bytes += q8_block(tensor.data.data() + i);
  }
  return bytes;
}
/// What a reader gets back.
inline Numbers stored_as(Numbers tensor, Format format) {
  for (std::size_t i = 0; i < tensor.size(); ++i) {
    double& number = tensor.data[i];
    if (format == Format::f16) number = double{to_float(from_float<f16>(static_cast<float>(number)))};
    if (format == Format::bf16) number = double{to_float(from_float<bf16>(static_cast<float>(number)))};
    if (format == Format::q8_0 && i % 32 == 0) {
      const std::string block = q8_block(&number);
      std::uint16_t scale = 0;
      std::memcpy(&scale, block.data(), 2);
      for (std::size_t j = 0; j < 32; ++j)
        tensor.data[i + j] = double{to_float(f16{scale})} * static_cast<signed char>(block[2 + j]);
    }
  }
  return tensor;
}

// --- HuggingFace folders --------------------------------------------------------------------------------------------

inline std::string safetensors(const Tensors& tensors, std::string_view dtype = "F32") {
  Json header;
  std::string data;
  for (const auto& [name, tensor] : tensors) {
    const std::string bytes = encode(tensor, dtype == "F16"    ? Format::f16
                                             : dtype == "BF16" ? Format::bf16
                                                               : Format::f32);
    header[name] = {
        {"dtype", dtype}, {"shape", tensor.shape}, {"data_offsets", {data.size(), data.size() + bytes.size()}}};
    data += bytes;
  }
  return container_files::safetensors(header.dump(), data);
}

/// A golden model's folder, in pieces that a test may change before writing it.
struct Checkpoint {
  Json config;
  Tensors tensors;
  explicit Checkpoint(const std::string& model)
      : config(Json::parse(reference::read_file(harness::golden_folder(model) + "/config.json"))),
        tensors(reference::read_safetensors(harness::golden_folder(model) + "/model.safetensors")) {}

  void write_config(const Folder& folder) const { container_files::write(folder / "config.json", config.dump(1)); }
  void write(const Folder& folder, std::string_view dtype = "F32") const {
    write_config(folder);
    container_files::write(folder / "model.safetensors", safetensors(tensors, dtype));
  }
  /// Tensor i in shard i modulo `shards`, and the index.
  void write_shards(const Folder& folder, std::size_t shards) const {
    write_config(folder);
    std::vector<Tensors> parts(shards);
    Json index;
    std::size_t next = 0;
    for (const auto& [name, tensor] : tensors) {
      const std::size_t shard = next++ % shards;
      parts[shard][name] = tensor;
      index["weight_map"][name] = "model-" + std::to_string(shard) + ".safetensors";
    }
    for (std::size_t shard = 0; shard < shards; ++shard)
      container_files::write(folder / ("model-" + std::to_string(shard) + ".safetensors"), safetensors(parts[shard]));
    container_files::write(folder / "model.safetensors.index.json", index.dump());
  }
};

/// The config as files of the hub spell it: RoPE's numbers at the top.
inline Json hub_style(Json config) {
  if (config.at("model_type") == "llama") {
    Json rope = config.at("rope_parameters");
    config["rope_theta"] = rope.at("rope_theta");
    rope.erase("rope_theta");
    config["rope_scaling"] = rope.at("rope_type") == "default" ? Json() : rope;
  } else if (config.at("model_type") == "gemma3_text") {
    Json rope = config.at("rope_parameters").at("full_attention");
    config["rope_theta"] = rope.at("rope_theta");
    rope.erase("rope_theta");
    config["rope_scaling"] = rope;
    config["rope_local_base_freq"] = config.at("rope_parameters").at("sliding_attention").at("rope_theta");
    config.erase("layer_types");
    config.erase("_sliding_window_pattern");
  } else {
    config["tie_word_embeddings"] = config.at("scale_decoder_outputs");
    config.erase("scale_decoder_outputs");
    config["n_positions"] = 512;
  }
  config.erase("rope_parameters");
  config.erase("dtype");
  config["torch_dtype"] = "float32";
  return config;
}

// --- GGUF files -----------------------------------------------------------------------------------------------------

/// Rows [heads, 2, half] to [heads, half, 2].
inline Numbers rows_for_adjacent_pairs(const Numbers& from, std::size_t head_dim) {
  Numbers to(from.shape);
  const std::size_t half = head_dim / 2;
  for (std::size_t row = 0; row < from.rows(); ++row) {
    const std::size_t head = row / head_dim, pair = row % head_dim % half, second = row % head_dim / half;
    std::copy_n(from.row(row), from.columns(), to.row(head * head_dim + 2 * pair + second));
  }
  return to;
}

inline std::string gguf_name(const std::string& hf, bool gemma) {
  static const std::vector<std::pair<std::string, std::string>> both{{"model.embed_tokens.", "token_embd."},
                                                                     {"model.norm.", "output_norm."},
                                                                     {"lm_head.", "output."},
                                                                     {"model.layers.", "blk."}};
  static const std::vector<std::pair<std::string, std::string>> parts{{"input_layernorm", "attn_norm"},
                                                                      {"self_attn.q_norm", "attn_q_norm"},
                                                                      {"self_attn.k_norm", "attn_k_norm"},
                                                                      {"self_attn.q_proj", "attn_q"},
                                                                      {"self_attn.k_proj", "attn_k"},
                                                                      {"self_attn.v_proj", "attn_v"},
                                                                      {"self_attn.o_proj", "attn_output"},
                                                                      {"mlp.gate_proj", "ffn_gate"},
                                                                      {"mlp.up_proj", "ffn_up"},
                                                                      {"mlp.down_proj", "ffn_down"},
                                                                      {"pre_feedforward_layernorm", "ffn_norm"},
                                                                      {"post_feedforward_layernorm", "post_ffw_norm"}};
  const std::vector<std::pair<std::string, std::string>> after{
      {"post_attention_layernorm", gemma ? "post_attention_norm" : "ffn_norm"}};
  return reference::replaced(reference::replaced(reference::replaced(hf, both), after), parts);
}

using Metadata = std::vector<std::pair<std::string, std::string>>;  ///< key, type and value as bytes

inline std::string u32(std::uint32_t value) { return raw(std::uint32_t{4}) + raw(value); }
inline std::string f32(double value) { return raw(std::uint32_t{6}) + raw(static_cast<float>(value)); }
inline std::string text(std::string_view value) { return raw(std::uint32_t{8}) + container_files::gguf_text(value); }

/// What llama.cpp's converters write for a config of the Llama or Gemma 3 family.
inline Metadata metadata_of(const Json& config) {
  const bool gemma = config.at("model_type") == "gemma3_text";
  const std::string a = gemma ? "gemma3." : "llama.";
  const auto number = [&](const char* key) { return u32(config.at(key).get<std::uint32_t>()); };
  Metadata m{{"general.architecture", text(gemma ? "gemma3" : "llama")},
             {"general.name", text("tiny")},
             {a + "block_count", number("num_hidden_layers")},
             {a + "context_length", number("max_position_embeddings")},
             {a + "embedding_length", number("hidden_size")},
             {a + "feed_forward_length", number("intermediate_size")},
             {a + "attention.head_count", number("num_attention_heads")},
             {a + "attention.head_count_kv", number("num_key_value_heads")},
             {a + "attention.key_length", number("head_dim")},
             {a + "attention.value_length", number("head_dim")},
             {a + "attention.layer_norm_rms_epsilon", f32(config.at("rms_norm_eps"))},
             {a + "vocab_size", number("vocab_size")},
             {"tokenizer.ggml.model", text("gpt2")}};
  const Json rope = gemma ? config.at("rope_parameters").at("full_attention") : config.at("rope_parameters");
  m.emplace_back(a + "rope.freq_base", f32(rope.at("rope_theta")));
  if (!gemma) m.emplace_back(a + "rope.dimension_count", number("head_dim"));
  if (rope.at("rope_type") == "linear") {
    m.emplace_back(a + "rope.scaling.type", text("linear"));
    m.emplace_back(a + "rope.scaling.factor", f32(rope.at("factor")));
  }
  if (!gemma) return m;
  m.emplace_back(a + "attention.sliding_window", number("sliding_window"));
  m.emplace_back(a + "final_logit_softcapping", f32(config.at("final_logit_softcapping")));
  return m;
}

/// A GGUF file of a checkpoint; matrices in `format` where rows are whole blocks, the rest in f32.
struct GgufCheckpoint {
  Metadata metadata;
  struct Entry {
    Numbers numbers;
    Format format;
  };
  std::map<std::string, Entry> tensors;

  /// `checkpoint` gets the numbers that a reader of the file will see.
  GgufCheckpoint(Checkpoint& checkpoint, Format wanted) : metadata(metadata_of(checkpoint.config)) {
    const bool gemma = checkpoint.config.at("model_type") == "gemma3_text";
    const std::size_t head_dim = checkpoint.config.at("head_dim");
    for (auto& [name, numbers] : checkpoint.tensors) {
      const bool matrix = numbers.shape.size() == 2;
      const bool whole = wanted != Format::q8_0 || (matrix && numbers.columns() % 32 == 0);
      const Format format = matrix && whole ? wanted : Format::f32;
      numbers = stored_as(numbers, format);
      Numbers file = numbers;
      if (gemma && name.find("norm") != std::string::npos)
        for (std::size_t i = 0; i < file.size(); ++i) {
          const float shifted = 1.f + static_cast<float>(numbers.data[i]);
          file.data[i] = double{shifted};
          numbers.data[i] = double{shifted - 1.f};
        }
      if (!gemma && (name.find("q_proj") != std::string::npos || name.find("k_proj") != std::string::npos))
        file = rows_for_adjacent_pairs(file, head_dim);
      tensors[gguf_name(name, gemma)] = {file, format};
    }
  }
  std::string bytes() const {
    container_files::Gguf file;
    file.header(tensors.size(), metadata.size());
    for (const auto& [key, value] : metadata) file.bytes += container_files::gguf_text(key) + value;
    std::string data;
    for (const auto& [name, entry] : tensors) {
      const std::vector<std::uint64_t> dimensions(entry.numbers.shape.rbegin(), entry.numbers.shape.rend());
      file.tensor(name, dimensions, static_cast<std::uint32_t>(entry.format), data.size());
      data += encode(entry.numbers, entry.format);
      data.append((32 - data.size() % 32) % 32, '\0');
    }
    file.pad();
    return file.bytes + data;
  }
};

// --- what was loaded ------------------------------------------------------------------------------------------------

/// The checkpoint's name of a canonical parameter, by the judge's table.
inline std::string hf_name(const Checkpoint& checkpoint, const std::string& canonical) {
  if (checkpoint.config.at("model_type") == "t5")
    return reference::t5_name(canonical, checkpoint.config.at("feed_forward_proj") == "gated-gelu");
  return reference::llama_name(canonical, checkpoint.config.at("model_type") == "gemma3_text");
}

/// How many parameters differ from the checkpoint's numbers in any bit, each rounded to W where it is a matrix.
template <class M, class Device, class W>
int differing(const Model<M, Device, W>& model, const Checkpoint& checkpoint) {
  int count = 0;
  for (const Parameter& p : parameters<M>) {
    const auto found = checkpoint.tensors.find(hf_name(checkpoint, p.name()));
    REQUIRE_MESSAGE(found != checkpoint.tensors.end(), p.name());
    const auto ours = model.weights().get(p);
    REQUIRE(ours.size() == found->second.size());
    bool equal = true;
    for (std::size_t i = 0; i < ours.size(); ++i) {
      const auto value = static_cast<float>(found->second.data[i]);
      const float expected = p.matrix ? to_float(from_float<W>(value)) : value;
      equal = equal && std::bit_cast<std::uint32_t>(ours[i]) == std::bit_cast<std::uint32_t>(expected);
    }
    if (!equal) ++count;
    CHECK_MESSAGE(equal, p.name());
  }
  return count;
}

}  // namespace load_files
