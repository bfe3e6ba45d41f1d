/// Text to token ids and back.
#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "typeformer/core/annotate.hpp"

namespace typeformer::inline TYPEFORMER_ABI {

namespace text {
struct TokenizerParts;
}

/// How a text is encoded.
struct EncodeOptions {
  /// Special tokens written out in the text, such as <|im_end|>, become the token. False: they are text like any other,
  /// which is right for words of an untrusted user. Added tokens that are not special are found either way.
  bool special_tokens_in_text = true;
  /// Begin with what the file puts before a text (true: with the BOS token even if the file puts nothing; false: with
  /// nothing). Not set: as the file says. A text made by a chat template brings its own BOS: pass false.
  std::optional<bool> add_bos = std::nullopt;
  /// The same for the end of the text and EOS.
  std::optional<bool> add_eos = std::nullopt;
};

/// How ids are decoded.
struct DecodeOptions {
  bool skip_special_tokens = false;
};

/// A tokenizer read from a file. Equal to the published one: ids are those of the HF tokenizers library for the same
/// tokenizer.json, and for a GGUF file those of the tokenizer.json that it was made from.
/// Supported: byte-level BPE. Immutable, so const functions may be called by many threads at once; copies share all
/// data.
class Tokenizer {
 public:
  /// path: an HF folder (tokenizer.json, and when present tokenizer_config.json, special_tokens_map.json,
  /// chat_template.jinja, generation_config.json or config.json), a tokenizer.json, or a .gguf.
  /// Throws Error naming the file and the field for a file that is damaged or asks for something not supported.
  explicit Tokenizer(const std::filesystem::path& path);

  /// The token ids of a text. Ill-formed UTF-8 is read as U+FFFD, one for each maximal ill-formed part (what Python's
  /// errors='replace' and Rust's from_utf8_lossy make of it); bytes without a token are dropped.
  /// Linear in the length of the text but for n log n within one word. Throws Error for texts of 2 GiB and more and
  /// for add_bos or add_eos without such a token.
  std::vector<std::int32_t> encode(std::string_view utf8, const EncodeOptions& options = {}) const;

  /// The text of token ids: their bytes one after the other, ill-formed UTF-8 replaced as in encode.
  /// No clean-up of spaces. Throws Error for an id that is no token.
  std::string decode(std::span<const std::int32_t> ids, const DecodeOptions& options = {}) const;

  /// The bytes a token stands for; not always whole characters. Throws Error for an id that is no token.
  std::string_view bytes_of(std::int32_t id) const;
  /// The token as the vocabulary spells it, e.g. "\u0120the" for " the". Throws Error for an id that is no token.
  std::string_view spelling_of(std::int32_t id) const;
  /// The id of a token by its spelling, e.g. "<|im_end|>"; nothing when there is no such token.
  std::optional<std::int32_t> id_of(std::string_view spelling) const;
  /// True for the id of a token. Models may have more rows than their tokenizer has tokens (padding).
  bool has(std::int32_t id) const noexcept;
  /// True for control tokens. Throws Error for an id that is no token.
  bool is_special(std::int32_t id) const;

  /// One past the largest token id.
  std::int32_t vocab_size() const noexcept;
  std::optional<std::int32_t> bos_id() const noexcept;
  std::optional<std::int32_t> eos_id() const noexcept;
  /// The spelling of BOS and EOS, as chat templates want them; "" when there is none.
  std::string_view bos_token() const;
  std::string_view eos_token() const;
  /// Ids that end a generation, ascending: EOS and what the generation config adds.
  std::span<const std::int32_t> stop_ids() const noexcept;
  /// The chat template's source, "" when the file has none. See ChatTemplate.
  const std::string& chat_template() const noexcept;

 private:
  std::shared_ptr<const text::TokenizerParts> parts_;
};

}  // namespace typeformer

#if !defined(TYPEFORMER_SEPARATE_COMPILATION)
#include "typeformer/text/tokenizer_impl.hpp"
#endif
