/// Words of PTX text.
#pragma once
#include <cctype>
#include <deque>
#include <string>
#include <string_view>

#include "module.hpp"

namespace ptx {

class Lexer {
 public:
  struct Word {
    std::string_view text;
    int line = 0;
  };

  Lexer(std::string_view text, int line) : text_(text), line_(line) {}

  bool done() { return peek().text.empty(); }
  int line() { return peek().line; }
  /// The word after `ahead` others; empty at the end.
  const Word& peek(std::size_t ahead = 0) {
    while (words_.size() <= ahead) words_.push_back(read());
    return words_[ahead];
  }
  std::string next() {
    if (done()) fail("unexpected end of file");
    const std::string word(peek().text);
    words_.pop_front();
    return word;
  }
  bool is(std::string_view word) { return peek().text == word; }
  bool accept(std::string_view word) {
    if (!is(word)) return false;
    words_.pop_front();
    return true;
  }
  void expect(std::string_view word) {
    if (!accept(word)) fail("expected '" + std::string(word) + "', found '" + std::string(peek().text) + "'");
  }
  void skip_past(std::string_view word) {
    while (!accept(word)) next();
  }
  [[noreturn]] void fail(const std::string& what) { throw Error("ptx: line " + std::to_string(line()) + ": " + what); }
  /// The text up to the brace that closes the one just read; nothing may have been peeked at.
  std::string_view skip_braces();

  static u64 bits_of(std::string_view number);
  s64 integer() {
    const bool negative = accept("-");
    const u64 value = bits_of(next());
    return static_cast<s64>(negative ? 0 - value : value);
  }

 private:
  Word read();
  bool skip_comment();

  std::string_view text_;
  std::size_t at_ = 0;
  int line_;
  std::deque<Word> words_;
};

inline bool is_number(std::string_view word) {
  return !word.empty() && std::isdigit(static_cast<unsigned char>(word[0]));
}

}  // namespace ptx
