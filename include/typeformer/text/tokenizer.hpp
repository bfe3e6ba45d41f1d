/// Text to token ids and back.
#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "typeformer/core/annotate.hpp"
#include "typeformer/core/error.hpp"
#include "typeformer/io/gguf.hpp"
#include "typeformer/text/tokenizer_folder.hpp"
#include "typeformer/text/tokenizer_gguf.hpp"
#include "typeformer/text/tokenizer_parts.hpp"
#include "typeformer/text/utf8.hpp"

namespace typeformer::inline TYPEFORMER_ABI {

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
  explicit Tokenizer(const std::filesystem::path& path) : parts_(read(path)) {}

  /// The token ids of a text. Ill-formed UTF-8 is read as U+FFFD, one for each maximal ill-formed part (what Python's
  /// errors='replace' and Rust's from_utf8_lossy make of it); bytes without a token are dropped.
  /// Linear in the length of the text but for n log n within one word. Throws Error for texts of 2 GiB and more and
  /// for add_bos or add_eos without such a token.
  std::vector<std::int32_t> encode(std::string_view utf8, const EncodeOptions& options = {}) const;

  /// The text of token ids: their bytes one after the other, ill-formed UTF-8 replaced as in encode.
  /// No clean-up of spaces. Throws Error for an id that is no token.
  std::string decode(std::span<const std::int32_t> ids, const DecodeOptions& options = {}) const {
    std::string bytes;
    for (const std::int32_t id : ids) {
      if (!options.skip_special_tokens || !is_special(id)) bytes += bytes_of(id);
    }
    return text::is_valid_utf8(bytes) ? bytes : text::to_valid_utf8(bytes);
  }

  /// The bytes a token stands for; not always whole characters. Throws Error for an id that is no token.
  std::string_view bytes_of(std::int32_t id) const { return token(id).bytes; }
  /// The token as the vocabulary spells it, e.g. "\u0120the" for " the". Throws Error for an id that is no token.
  std::string_view spelling_of(std::int32_t id) const { return token(id).spelling; }
  /// The id of a token by its spelling, e.g. "<|im_end|>"; nothing when there is no such token.
  std::optional<std::int32_t> id_of(std::string_view spelling) const { return parts_->vocabulary.id_of(spelling); }
  /// True for control tokens. Throws Error for an id that is no token.
  bool is_special(std::int32_t id) const { return token(id).special; }

  /// One past the largest token id.
  std::int32_t vocab_size() const noexcept { return parts_->vocabulary.size(); }
  std::optional<std::int32_t> bos_id() const noexcept { return parts_->bos; }
  std::optional<std::int32_t> eos_id() const noexcept { return parts_->eos; }
  /// The spelling of BOS and EOS, as chat templates want them; "" when there is none.
  std::string_view bos_token() const { return parts_->bos ? spelling_of(*parts_->bos) : std::string_view{}; }
  std::string_view eos_token() const { return parts_->eos ? spelling_of(*parts_->eos) : std::string_view{}; }
  /// Ids that end a generation, ascending: EOS and what the generation config adds.
  std::span<const std::int32_t> stop_ids() const noexcept { return parts_->stop; }
  /// The chat template's source, "" when the file has none. See ChatTemplate.
  const std::string& chat_template() const noexcept { return parts_->chat_template; }

 private:
  class Encoding;

  static std::shared_ptr<const text::TokenizerParts> read(const std::filesystem::path& path);
  const text::Vocabulary::Token& token(std::int32_t id) const {
    const text::Vocabulary::Token* found = parts_->vocabulary.find(id);
    if (found == nullptr)
      throw Error("Tokenizer", "token id", "the id of a token, below " + std::to_string(vocab_size()),
                  std::to_string(id));
    return *found;
  }

  std::shared_ptr<const text::TokenizerParts> parts_;
};

/// One call of encode: its working memory, and a memory of the words already seen.
class Tokenizer::Encoding {
 public:
  Encoding(const text::TokenizerParts& parts, std::size_t text_size, std::vector<std::int32_t>& ids)
      : parts_(parts), pieces_(parts.pre_tokenizer), ids_(ids) {
    constexpr std::size_t worth_a_table = 4096;
    if (text_size >= worth_a_table) seen_.resize(table_size);
  }

  void run(std::string_view text, bool find_special) {
    const auto on_token = [&](std::int32_t id) { ids_.push_back(id); };
    const auto on_normalized = [&](std::string_view part) {
      pieces_.split(part, [&](std::string_view piece) { encode_piece(piece); });
    };
    parts_.added.split(
        text, find_special,
        [&](std::string_view part) {
          if (parts_.normalization != text::Normalization::none)
            part = normalized_.emplace_back(text::normalized(part, parts_.normalization));
          parts_.added_normalized.split(part, find_special, on_normalized, on_token);
        },
        on_token);
  }

 private:
  struct Seen {
    std::string_view piece;
    std::size_t begin = 0, count = 0;  // its tokens in ids_
  };
  static constexpr std::size_t table_size = 4096, longest_seen = 64;

  // A piece seen before is copied from where its tokens stand already. The table forgets on collision.
  void encode_piece(std::string_view piece) {
    if (seen_.empty() || piece.size() > longest_seen) return parts_.model->encode(piece, ids_);
    Seen& seen = seen_[std::hash<std::string_view>{}(piece) % table_size];
    if (seen.piece == piece) {
      for (std::size_t i = 0; i < seen.count; ++i) ids_.push_back(ids_[seen.begin + i]);
      return;
    }
    const std::size_t begin = ids_.size();
    parts_.model->encode(piece, ids_);
    seen = {piece, begin, ids_.size() - begin};
  }

  const text::TokenizerParts& parts_;
  text::PreTokenization pieces_;
  std::vector<std::int32_t>& ids_;
  std::vector<Seen> seen_;
  std::deque<std::string> normalized_;  // never moves its strings: pieces point into them
};

inline std::vector<std::int32_t> Tokenizer::encode(std::string_view utf8, const EncodeOptions& options) const {
  constexpr std::size_t limit = std::size_t{1} << 31;
  if (utf8.size() >= limit)
    throw Error("Tokenizer::encode", "text", "fewer than 2^31 bytes", std::to_string(utf8.size()));
  if (options.add_bos.value_or(false) && parts_->prefix.empty() && !parts_->bos)
    throw Error("Tokenizer::encode", "add_bos", "a tokenizer with a BOS token", "none");
  if (options.add_eos.value_or(false) && parts_->suffix.empty() && !parts_->eos)
    throw Error("Tokenizer::encode", "add_eos", "a tokenizer with an EOS token", "none");
  std::string replaced;
  if (!text::is_valid_utf8(utf8)) utf8 = replaced = text::to_valid_utf8(utf8);
  std::vector<std::int32_t> ids;
  ids.reserve(utf8.size() / 4 + 8);
  const auto surround = [&](const std::vector<std::int32_t>& file_says, std::optional<bool> wanted,
                            std::optional<std::int32_t> own) {
    if (!wanted.value_or(true)) return;
    ids.insert(ids.end(), file_says.begin(), file_says.end());
    if (wanted && file_says.empty()) ids.push_back(*own);
  };
  surround(parts_->prefix, options.add_bos, parts_->bos);
  Encoding(*parts_, utf8.size(), ids).run(utf8, options.special_tokens_in_text);
  surround(parts_->suffix, options.add_eos, parts_->eos);
  return ids;
}

inline std::shared_ptr<const text::TokenizerParts> Tokenizer::read(const std::filesystem::path& path) {
  auto parts = std::make_shared<text::TokenizerParts>();
  std::error_code unreadable;
  if (std::filesystem::is_directory(path, unreadable)) {
    text::TokenizerFolderReader(path, *parts).read();
  } else if (path.extension() == ".gguf") {
    const io::GgufFile file(path);
    text::TokenizerGgufReader(file, *parts).read();
  } else {
    text::read_tokenizer_json(path, *parts);
  }
  parts->index_added_tokens();
  return parts;
}

}  // namespace typeformer
