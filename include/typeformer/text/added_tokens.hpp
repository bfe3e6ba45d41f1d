/// Added tokens: strings that are found in a text before anything else is done with it.
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "typeformer/core/annotate.hpp"
#include "typeformer/text/unicode.hpp"
#include "typeformer/text/utf8.hpp"

namespace typeformer::inline TYPEFORMER_ABI::text {

/// One added token and how it is found. Fields as in tokenizer.json.
struct AddedToken {
  std::string content;
  std::int32_t id = -1;
  bool special = false;      ///< a control token such as <|im_end|>
  bool single_word = false;  ///< found only where no word character touches it
  bool lstrip = false;       ///< takes the white space before it
  bool rstrip = false;       ///< takes the white space behind it
  bool normalized = false;   ///< searched in the normalized text instead of the original
};

/// Finds a set of added tokens in a text: leftmost first, the longest of several, in time linear in the text.
class AddedTokenSearch {
 public:
  AddedTokenSearch() = default;

  /// A content that is there already is replaced. Empty contents are never found.
  void add(AddedToken token) {
    if (token.content.empty()) return;
    std::uint32_t node = 0;
    for (const char byte : token.content) node = child_or_new(node, static_cast<unsigned char>(byte));
    if (nodes_[node].token < 0) {
      nodes_[node].token = static_cast<std::int32_t>(tokens_.size());
      tokens_.emplace_back();
    }
    tokens_[static_cast<std::size_t>(nodes_[node].token)] = std::move(token);
  }

  const std::vector<AddedToken>& tokens() const { return tokens_; }

  /// Calls on_text(std::string_view) for what lies between added tokens (never empty) and on_token(id) for each found,
  /// in order. Special tokens are text when `find_special` is false.
  template <class OnText, class OnToken>
  void split(std::string_view text, bool find_special, OnText&& on_text, OnToken&& on_token) const {
    std::size_t done = 0;
    for (std::size_t at = 0; at < text.size();) {
      const AddedToken* token = longest_at(text, at);
      if (token == nullptr) {
        ++at;
        continue;
      }
      std::size_t begin = at, end = at + token->content.size();
      at = end;  // what is passed over hides shorter matches inside it, as in the reference implementation
      if (token->special && !find_special) continue;
      if (token->single_word && (ends_with_word(text.substr(0, begin)) || begins_with_word(text.substr(end)))) continue;
      if (token->lstrip) begin = std::max(done, space_before(text, begin));
      if (token->rstrip) end = space_behind(text, end);
      if (begin >= end) continue;  // the token before it took all of it
      if (done < begin) on_text(text.substr(done, begin - done));
      on_token(token->id);
      done = end;
    }
    if (done < text.size()) on_text(text.substr(done));
  }

 private:
  struct Node {
    std::uint32_t first_child = 0, sibling = 0;  // 0: none, since the root is nobody's child
    std::int32_t token = -1;
    unsigned char byte = 0;
  };

  std::uint32_t child(std::uint32_t node, unsigned char byte) const {
    if (node == 0) return root_children_[byte];
    std::uint32_t next = nodes_[node].first_child;
    while (next != 0 && nodes_[next].byte != byte) next = nodes_[next].sibling;
    return next;
  }
  std::uint32_t child_or_new(std::uint32_t node, unsigned char byte) {
    if (const std::uint32_t found = child(node, byte); found != 0) return found;
    const auto made = static_cast<std::uint32_t>(nodes_.size());
    nodes_.push_back({0, nodes_[node].first_child, -1, byte});
    nodes_[node].first_child = made;
    if (node == 0) root_children_[byte] = made;
    return made;
  }
  const AddedToken* longest_at(std::string_view text, std::size_t at) const {
    const AddedToken* found = nullptr;
    for (std::uint32_t node = 0; at < text.size(); ++at) {
      node = child(node, static_cast<unsigned char>(text[at]));
      if (node == 0) break;
      if (nodes_[node].token >= 0) found = &tokens_[static_cast<std::size_t>(nodes_[node].token)];
    }
    return found;
  }

  // The beginning of the character that ends at `end` > 0 of valid UTF-8.
  static std::size_t previous(std::string_view text, std::size_t end) {
    do --end;
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80);
    return end;
  }
  static bool ends_with_word(std::string_view text) {
    return !text.empty() && is_word(utf8_step(text.substr(previous(text, text.size()))).code);
  }
  static bool begins_with_word(std::string_view text) { return !text.empty() && is_word(utf8_step(text).code); }
  static std::size_t space_before(std::string_view text, std::size_t at) {
    while (at > 0 && is_space(utf8_step(text.substr(previous(text, at))).code)) at = previous(text, at);
    return at;
  }
  static std::size_t space_behind(std::string_view text, std::size_t at) {
    for (Utf8Step step; at < text.size() && is_space((step = utf8_step(text.substr(at))).code);) at += step.length;
    return at;
  }

  std::vector<AddedToken> tokens_;
  std::vector<Node> nodes_ = std::vector<Node>(1);
  std::array<std::uint32_t, 256> root_children_{};
};

}  // namespace typeformer
