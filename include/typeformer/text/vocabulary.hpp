/// Token ids, their spellings and the bytes they stand for.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "typeformer/core/annotate.hpp"
#include "typeformer/core/error.hpp"
#include "typeformer/io/quote_name.hpp"

namespace typeformer::inline TYPEFORMER_ABI::text {

/// A two-way table of tokens. Ids may have gaps. A spelling is what the file writes, the bytes are what decoding gives.
class Vocabulary {
 public:
  struct Token {
    std::string spelling;
    std::string bytes;
    bool special = false;
    bool present = false;  ///< false in a gap
  };

  Vocabulary() = default;
  Vocabulary(const Vocabulary&) = delete;  // the index points into the table
  Vocabulary& operator=(const Vocabulary&) = delete;
  Vocabulary(Vocabulary&&) = default;
  Vocabulary& operator=(Vocabulary&&) = default;

  /// Room for ids below `size`. Throws Error when that is out of all proportion to the number of tokens: a file must
  /// not make the table larger than itself.
  void reserve(std::int64_t size, std::size_t tokens) {
    const auto limit = static_cast<std::int64_t>(8 * tokens + 65536);
    if (size > limit)
      throw Error("Tokenizer", "token ids", "ids below " + std::to_string(limit), std::to_string(size - 1));
    const Token* const before = tokens_.data();
    if (static_cast<std::size_t>(size) > tokens_.size()) tokens_.resize(static_cast<std::size_t>(size));
    if (tokens_.data() != before) index_spellings();  // the index points into the table
  }

  /// Throws Error when the id or the spelling is taken. The id must have room.
  void add(std::int32_t id, std::string spelling, std::string bytes) {
    Token& token = tokens_.at(static_cast<std::size_t>(id));
    if (token.present)
      throw Error("Tokenizer", "token " + std::to_string(id), "one spelling",
                  "two: " + io::quote_name(token.spelling) + " and " + io::quote_name(spelling));
    token = {std::move(spelling), std::move(bytes), false, true};
    const auto [entry, inserted] = ids_.emplace(token.spelling, id);
    if (inserted) return;
    throw Error("Tokenizer", "token " + io::quote_name(token.spelling), "one id",
                std::to_string(entry->second) + " and " + std::to_string(id));
  }

  void set_bytes(std::int32_t id, std::string bytes) {
    tokens_.at(static_cast<std::size_t>(id)).bytes = std::move(bytes);
  }
  void mark_special(std::int32_t id, bool special) { tokens_.at(static_cast<std::size_t>(id)).special = special; }

  /// The token of that id, or null.
  const Token* find(std::int32_t id) const noexcept {
    const auto index = static_cast<std::size_t>(id);
    return id >= 0 && index < tokens_.size() && tokens_[index].present ? &tokens_[index] : nullptr;
  }
  std::optional<std::int32_t> id_of(std::string_view spelling) const {
    const auto found = ids_.find(spelling);
    return found == ids_.end() ? std::nullopt : std::optional(found->second);
  }
  /// One past the largest id.
  std::int32_t size() const noexcept { return static_cast<std::int32_t>(tokens_.size()); }

 private:
  void index_spellings() {
    ids_.clear();
    for (std::size_t id = 0; id < tokens_.size(); ++id) {
      if (tokens_[id].present) ids_.emplace(tokens_[id].spelling, static_cast<std::int32_t>(id));
    }
  }
  std::vector<Token> tokens_;
  std::unordered_map<std::string_view, std::int32_t> ids_;
};

}  // namespace typeformer
