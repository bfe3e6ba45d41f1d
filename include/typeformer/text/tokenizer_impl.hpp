/// Bodies of tokenizer.hpp.
#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
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
#include "typeformer/io/quote_name.hpp"
#include "typeformer/text/tokenizer.hpp"
#include "typeformer/text/tokenizer_folder.hpp"
#include "typeformer/text/tokenizer_gguf.hpp"
#include "typeformer/text/tokenizer_parts.hpp"
#include "typeformer/text/utf8.hpp"

namespace typeformer::inline TYPEFORMER_ABI {

namespace text {

/// One call of encode: its working memory, and a memory of the words already seen.
class Encoding {
 public:
  Encoding(const TokenizerParts& parts, std::size_t text_size, std::vector<std::int32_t>& ids)
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
          if (parts_.normalization != Normalization::none)
            part = normalized_.emplace_back(normalized(part, parts_.normalization));
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

  const TokenizerParts& parts_;
  PreTokenization pieces_;
  std::vector<std::int32_t>& ids_;
  std::vector<Seen> seen_;
  std::deque<std::string> normalized_;  // never moves its strings: pieces point into them
};

inline void read_tokenizer_files(const std::filesystem::path& path, TokenizerParts& parts) {
  std::error_code unreadable;
  if (std::filesystem::is_directory(path, unreadable)) {
    TokenizerFolderReader(path, parts).read();
  } else if (path.extension() == ".gguf") {
    const io::GgufFile file(path);
    TokenizerGgufReader(file, parts).read();
  } else {
    read_tokenizer_json(path, parts);
  }
}

inline std::shared_ptr<const TokenizerParts> read_tokenizer(const std::filesystem::path& path) {
  auto parts = std::make_shared<TokenizerParts>();
  try {
    read_tokenizer_files(path, *parts);
  } catch (const Error& error) {  // every message names the file, or a file of the folder
    const std::string name = io::quote_name(path.native());
    if (error.argument().starts_with(std::string_view(name).substr(0, name.size() - 1))) throw;
    throw Error(error.operation(), name + ": " + error.argument(), error.expected(), error.got());
  }
  parts->index_added_tokens();
  return parts;
}

/// Throws Error for an id that is no token.
inline const Vocabulary::Token& token_of(const TokenizerParts& parts, std::int32_t id) {
  const Vocabulary::Token* found = parts.vocabulary.find(id);
  if (found == nullptr)
    throw Error("Tokenizer", "token id", "the id of a token, below " + std::to_string(parts.vocabulary.size()),
                std::to_string(id));
  return *found;
}

}  // namespace text

TYPEFORMER_INLINE Tokenizer::Tokenizer(const std::filesystem::path& path) : parts_(text::read_tokenizer(path)) {}

TYPEFORMER_INLINE std::vector<std::int32_t> Tokenizer::encode(std::string_view utf8,
                                                              const EncodeOptions& options) const {
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
  text::Encoding(*parts_, utf8.size(), ids).run(utf8, options.special_tokens_in_text);
  surround(parts_->suffix, options.add_eos, parts_->eos);
  return ids;
}

TYPEFORMER_INLINE std::string Tokenizer::decode(std::span<const std::int32_t> ids, const DecodeOptions& options) const {
  std::string bytes;
  for (const std::int32_t id : ids) {
    if (!options.skip_special_tokens || !is_special(id)) bytes += bytes_of(id);
  }
  return text::is_valid_utf8(bytes) ? bytes : text::to_valid_utf8(bytes);
}

TYPEFORMER_INLINE std::string_view Tokenizer::bytes_of(std::int32_t id) const {
  return text::token_of(*parts_, id).bytes;
}
TYPEFORMER_INLINE std::string_view Tokenizer::spelling_of(std::int32_t id) const {
  return text::token_of(*parts_, id).spelling;
}
TYPEFORMER_INLINE std::optional<std::int32_t> Tokenizer::id_of(std::string_view spelling) const {
  return parts_->vocabulary.id_of(spelling);
}
TYPEFORMER_INLINE bool Tokenizer::has(std::int32_t id) const noexcept { return parts_->vocabulary.find(id) != nullptr; }
TYPEFORMER_INLINE bool Tokenizer::is_special(std::int32_t id) const { return text::token_of(*parts_, id).special; }

TYPEFORMER_INLINE std::int32_t Tokenizer::vocab_size() const noexcept { return parts_->vocabulary.size(); }
TYPEFORMER_INLINE std::optional<std::int32_t> Tokenizer::bos_id() const noexcept { return parts_->bos; }
TYPEFORMER_INLINE std::optional<std::int32_t> Tokenizer::eos_id() const noexcept { return parts_->eos; }
TYPEFORMER_INLINE std::string_view Tokenizer::bos_token() const {
  return parts_->bos ? spelling_of(*parts_->bos) : std::string_view{};
}
TYPEFORMER_INLINE std::string_view Tokenizer::eos_token() const {
  return parts_->eos ? spelling_of(*parts_->eos) : std::string_view{};
}
TYPEFORMER_INLINE std::span<const std::int32_t> Tokenizer::stop_ids() const noexcept { return parts_->stop; }
TYPEFORMER_INLINE const std::string& Tokenizer::chat_template() const noexcept { return parts_->chat_template; }

}  // namespace typeformer
