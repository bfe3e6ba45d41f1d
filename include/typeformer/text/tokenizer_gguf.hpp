/// Reads the tokenizer in a GGUF file's metadata.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "typeformer/core/annotate.hpp"
#include "typeformer/core/error.hpp"
#include "typeformer/io/gguf.hpp"
#include "typeformer/io/quote_name.hpp"
#include "typeformer/text/tokenizer_parts.hpp"

namespace typeformer::inline TYPEFORMER_ABI::text {

/// What a GGUF file leaves to its reader: `tokenizer.ggml.pre` names a published tokenizer, and these are its settings.
struct GgufPreset {
  std::string_view name;
  std::string_view pattern;
  bool digits_first = false;  ///< Digits(individual_digits) before the pattern
  bool nfc = false;
  bool ignore_merges = false;
  bool adds_bos = false;  ///< where the file does not say
};

/// The pattern of the tokenizers of Llama 3 and, with one digit at a time, of Qwen 2 (their tokenizer.json).
inline constexpr std::string_view llama3_pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|)"
    R"( ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
inline constexpr std::string_view qwen2_pattern = R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|)"
                                                  R"( ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

inline constexpr std::array<GgufPreset, 6> gguf_presets = {{
    {.name = "gpt-2", .pattern = gpt2_pattern},
    {.name = "smollm", .pattern = gpt2_pattern, .digits_first = true},
    {.name = "llama-bpe", .pattern = llama3_pattern, .ignore_merges = true, .adds_bos = true},
    {.name = "llama3", .pattern = llama3_pattern, .ignore_merges = true, .adds_bos = true},
    {.name = "llama-v3", .pattern = llama3_pattern, .ignore_merges = true, .adds_bos = true},
    {.name = "qwen2", .pattern = qwen2_pattern, .nfc = true},
}};

/// Fills the parts from `tokenizer.*`. Byte-level BPE ("gpt2") only; other models and unknown `pre` names are Errors.
class TokenizerGgufReader {
 public:
  TokenizerGgufReader(const io::GgufFile& file, TokenizerParts& parts)
      : file_(file), where_(io::quote_name(file.file().path().native())), parts_(parts) {}

  void read() {
    if (const auto model = file_.get<std::string>("tokenizer.ggml.model"); model != "gpt2")
      refuse("tokenizer.ggml.model", "'gpt2'", io::quote_name(model));
    if (file_.find<bool>("tokenizer.ggml.add_space_prefix").value_or(false))
      refuse("tokenizer.ggml.add_space_prefix", "false", "true");
    const GgufPreset& preset = find_preset();
    if (preset.nfc) parts_.normalization = Normalization::nfc;
    if (preset.digits_first) parts_.pre_tokenizer.emplace_back(DigitsSplit{.individual = true});
    parts_.pre_tokenizer.emplace_back(PatternSplit{Pattern(preset.pattern, "tokenizer.ggml.pre")});
    read_tokens();
    read_merges(preset.ignore_merges);
    read_special_ids(preset.adds_bos);
    parts_.chat_template = file_.find<std::string>("tokenizer.chat_template").value_or("");
  }

 private:
  [[noreturn]] void refuse(std::string_view key, std::string_view expected, std::string_view got) const {
    throw Error("Tokenizer", where_ + ": " + std::string(key), expected, got);
  }

  const GgufPreset& find_preset() const {
    const auto name = file_.get<std::string>("tokenizer.ggml.pre");
    std::string names;
    for (const GgufPreset& preset : gguf_presets) {
      if (preset.name == name) return preset;
      names.append(names.empty() ? "" : ", ").append(preset.name);
    }
    refuse("tokenizer.ggml.pre", "one of " + names, io::quote_name(name));
  }

  // Types: 1 normal, 2 unknown, 3 control, 4 user defined, 5 unused. 2 to 4 are found in texts as a whole; 2 and 3 are
  // special. 6 (byte) belongs to other models.
  void read_tokens() {
    const auto tokens = file_.get<std::vector<std::string_view>>("tokenizer.ggml.tokens");
    const auto types = file_.find<std::vector<std::int32_t>>("tokenizer.ggml.token_type");
    if (types && types->size() != tokens.size())
      refuse("tokenizer.ggml.token_type", std::to_string(tokens.size()) + " entries", std::to_string(types->size()));
    parts_.vocabulary.reserve(static_cast<std::int64_t>(tokens.size()), tokens.size());
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      const std::string spelling(tokens[i]);
      const int type = types ? (*types)[i] : 1;
      const bool whole = type >= 2 && type <= 4;
      if (type < 1 || type > 5)
        refuse("tokenizer.ggml.token_type[" + std::to_string(i) + "]", "1 to 5", std::to_string(type));
      const auto id = static_cast<std::int32_t>(i);
      parts_.vocabulary.add(id, spelling, byte_level_bytes(spelling).value_or(spelling));
      // A converter writes control tokens as they look in a text.
      if (whole) parts_.add_token({.content = spelling, .id = id, .special = type != 4});
    }
  }

  void read_merges(bool ignore_merges) {
    const auto list = file_.get<std::vector<std::string_view>>("tokenizer.ggml.merges");
    MergeTable merges(list.size());
    for (std::size_t rank = 0; rank < list.size(); ++rank) add_merge(merges, parts_.vocabulary, rank, list[rank]);
    BytePairModel::Options options;
    if (ignore_merges) options.whole_words = words_by_bytes(parts_.vocabulary);
    parts_.model =
        std::make_unique<BytePairModel>(byte_symbols(parts_.vocabulary), std::move(merges), std::move(options));
  }

  std::optional<std::int32_t> special_id(std::string_view key) const {
    const auto id = file_.find<std::int32_t>(key);
    if (id && parts_.vocabulary.find(*id) == nullptr) refuse(key, "the id of a token", std::to_string(*id));
    return id;
  }

  void read_special_ids(bool adds_bos) {
    parts_.bos = special_id("tokenizer.ggml.bos_token_id");
    parts_.eos = special_id("tokenizer.ggml.eos_token_id");
    for (const char* key :
         {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id"}) {
      if (const auto id = special_id(key)) parts_.add_stop(*id);
    }
    if (file_.find<bool>("tokenizer.ggml.add_bos_token").value_or(adds_bos)) {
      if (!parts_.bos) refuse("tokenizer.ggml.bos_token_id", "an id, since texts begin with it", "none");
      parts_.prefix.push_back(*parts_.bos);
    }
    if (file_.find<bool>("tokenizer.ggml.add_eos_token").value_or(false)) {
      if (!parts_.eos) refuse("tokenizer.ggml.eos_token_id", "an id, since texts end with it", "none");
      parts_.suffix.push_back(*parts_.eos);
    }
  }

  const io::GgufFile& file_;
  std::string where_;
  TokenizerParts& parts_;
};

}  // namespace typeformer
