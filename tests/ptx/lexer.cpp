#include "lexer.hpp"

#include <algorithm>
#include <bit>
#include <cstdlib>

namespace ptx {
namespace {

bool is_word_character(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '$' || c == '%' || c == '.';
}

/// The end of the name or number that begins at `first`; `::` belongs to a name.
std::size_t end_of_word(std::string_view text, std::size_t first) {
  std::size_t end = first;
  const auto at = [&](std::size_t i) { return i < text.size() ? text[i] : '\0'; };
  while (is_word_character(at(end)) || (at(end) == ':' && at(end + 1) == ':' && is_word_character(at(end + 2))) ||
         (at(end) == ':' && end > first && at(end - 1) == ':'))
    ++end;
  return end;
}

}  // namespace

bool Lexer::skip_comment() {
  if (text_.substr(at_, 2) == "//") {
    at_ = std::min(text_.find('\n', at_), text_.size());
    return true;
  }
  if (text_.substr(at_, 2) != "/*") return false;
  const std::size_t end = std::min(text_.find("*/", at_ + 2), text_.size() - 2) + 2;
  line_ += static_cast<int>(std::count(text_.begin() + static_cast<std::ptrdiff_t>(at_),
                                       text_.begin() + static_cast<std::ptrdiff_t>(end), '\n'));
  at_ = end;
  return true;
}

Lexer::Word Lexer::read() {
  while (at_ < text_.size()) {
    if (text_[at_] == '\n') {
      ++line_;
      ++at_;
    } else if (std::isspace(static_cast<unsigned char>(text_[at_]))) {
      ++at_;
    } else if (!skip_comment()) {
      break;
    }
  }
  if (at_ >= text_.size()) return {{}, line_};
  std::size_t end = at_ + 1;
  if (text_[at_] == '"')
    end = std::min(text_.find('"', at_ + 1), text_.size() - 1) + 1;
  else if (text_.substr(at_, 5) == ".reg.")  // '.reg.b16 a', without a blank
    end = at_ + 4;
  else if (is_word_character(text_[at_]))
    end = end_of_word(text_, at_);
  const Word word{text_.substr(at_, end - at_), line_};
  at_ = end;
  return word;
}

std::string_view Lexer::skip_braces() {
  const std::size_t first = at_;
  for (int depth = 1; depth > 0;) {
    at_ = text_.find_first_of("{}\"/\n", at_);
    if (at_ == text_.npos) fail("'{' without '}'");
    if (text_[at_] == '/' && skip_comment()) continue;
    if (text_[at_] == '"') at_ = std::min(text_.find('"', at_ + 1), text_.size() - 1);
    depth += text_[at_] == '{' ? 1 : text_[at_] == '}' ? -1 : 0;
    line_ += text_[at_] == '\n';
    ++at_;
  }
  return text_.substr(first, at_ - 1 - first);
}

u64 Lexer::bits_of(std::string_view number) {
  const std::string text(number);
  const char second = text.size() > 2 && text[0] == '0' ? text[1] : '\0';
  if (second == 'f' || second == 'F' || second == 'd' || second == 'D')
    return std::strtoull(text.c_str() + 2, nullptr, 16);
  if (text.find('.') != text.npos) return std::bit_cast<u64>(std::atof(text.c_str()));
  return std::strtoull(text.c_str(), nullptr, 0);
}

}  // namespace ptx
