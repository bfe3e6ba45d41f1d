/// What a tokenizer consists of, whatever file it came from.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "typeformer/core/annotate.hpp"
#include "typeformer/text/added_tokens.hpp"
#include "typeformer/text/bpe.hpp"
#include "typeformer/text/byte_level.hpp"
#include "typeformer/text/model.hpp"
#include "typeformer/text/normalizer.hpp"
#include "typeformer/text/pre_tokenizer.hpp"
#include "typeformer/text/vocabulary.hpp"

namespace typeformer::inline TYPEFORMER_ABI::text {

/// The stages of encoding in order, and what surrounds them. The readers of file formats fill it, Tokenizer runs it;
/// another kind of model is another `model` and other steps, not another Tokenizer.
struct TokenizerParts {
  Vocabulary vocabulary;
  std::vector<AddedToken> added_tokens;  ///< in file order; index_added_tokens() makes them findable
  std::unordered_map<std::string, std::size_t> added_places;  ///< where in added_tokens a content stands
  AddedTokenSearch added, added_normalized;  ///< searched in the text; in the normalized text between the former
  Normalization normalization = Normalization::none;
  PreTokenizer pre_tokenizer;
  bool byte_level_alone = false;  ///< the pre-tokenizer is ByteLevel and no Sequence
  std::unique_ptr<const Model> model;
  std::vector<std::int32_t> prefix, suffix;  ///< what the file puts around a text
  std::optional<std::int32_t> bos, eos;
  std::vector<std::int32_t> stop;  ///< ids that end a generation, ascending
  std::string chat_template;

  /// Adds a token that is found as a whole: a string of the vocabulary, or a new one with the token's own id (the next
  /// free one when that is -1). A token of the same content is replaced, and keeps its id.
  /// Throws Error when the content has another id already.
  void add_token(AddedToken token) {
    if (const auto known = vocabulary.id_of(token.content)) {
      if (token.id >= 0 && token.id != *known) {
        throw Error("Tokenizer", "added token " + io::quote_name(token.content),
                    "id " + std::to_string(*known) + " as in the vocabulary", std::to_string(token.id));
      }
      token.id = *known;
    } else {
      if (token.id < 0) token.id = vocabulary.size();
      vocabulary.reserve(std::int64_t{token.id} + 1, static_cast<std::size_t>(vocabulary.size()) + 1);
      vocabulary.add(token.id, token.content, byte_level_bytes(token.content).value_or(token.content));
    }
    const auto [place, is_new] = added_places.emplace(token.content, added_tokens.size());
    if (is_new) {
      added_tokens.push_back(std::move(token));
    } else {
      added_tokens[place->second] = std::move(token);
    }
  }

  bool is_added(const std::string& content) const { return added_places.contains(content); }

  /// To be called once, when all tokens are there.
  void index_added_tokens() {
    for (AddedToken token : added_tokens) {
      vocabulary.mark_special(token.id, token.special);
      if (!token.normalized) {
        added.add(std::move(token));
        continue;
      }
      token.content = normalized(token.content, normalization);
      // The reference implementation decodes such a token from its normal form.
      vocabulary.set_bytes(token.id, byte_level_bytes(token.content).value_or(token.content));
      added_normalized.add(std::move(token));
    }
  }

  void add_stop(std::int32_t id) {
    const auto at = std::lower_bound(stop.begin(), stop.end(), id);
    if (at == stop.end() || *at != id) stop.insert(at, id);
  }
};

/// The symbol of every byte: the token whose spelling is the byte's character, or -1.
inline std::array<std::int32_t, 256> byte_symbols(const Vocabulary& vocabulary) {
  std::array<std::int32_t, 256> symbols{};
  for (std::size_t byte = 0; byte < symbols.size(); ++byte) {
    const char character = static_cast<char>(static_cast<unsigned char>(byte));
    symbols[byte] = vocabulary.id_of(byte_level_spelling({&character, 1})).value_or(-1);
  }
  return symbols;
}

/// Every spelling that stands for bytes, by these bytes: for models that take a whole word before they merge.
inline std::unordered_map<std::string, std::int32_t> words_by_bytes(const Vocabulary& vocabulary) {
  std::unordered_map<std::string, std::int32_t> words;
  for (std::int32_t id = 0; id < vocabulary.size(); ++id) {
    const Vocabulary::Token* token = vocabulary.find(id);
    if (token != nullptr && byte_level_bytes(token->spelling)) words.emplace(token->bytes, id);
  }
  return words;
}

/// Adds the merge of rank `rank`. Throws Error when a part or the result is no token.
inline void add_merge(MergeTable& merges, const Vocabulary& vocabulary, std::size_t rank, std::string_view left,
                      std::string_view right) {
  const auto symbol = [&](const std::string& spelling) {
    if (const auto id = vocabulary.id_of(spelling)) return *id;
    throw Error("Tokenizer", "merge " + std::to_string(rank), "parts and a result that are tokens",
                io::quote_name(spelling) + ", which is none");
  };
  const std::int32_t first = symbol(std::string(left)), second = symbol(std::string(right));
  const std::int32_t result = symbol(std::string(left).append(right));
  merges.insert(first, second, {static_cast<std::uint32_t>(rank), result});
}

/// Adds a merge written as "left right". Throws Error for another form.
inline void add_merge(MergeTable& merges, const Vocabulary& vocabulary, std::size_t rank, std::string_view pair) {
  const std::size_t space = pair.find(' ');
  if (space == pair.npos || pair.find(' ', space + 1) != pair.npos) {
    throw Error("Tokenizer", "merge " + std::to_string(rank), "two parts with a space between", io::quote_name(pair));
  }
  add_merge(merges, vocabulary, rank, pair.substr(0, space), pair.substr(space + 1));
}

}  // namespace typeformer
