/// Cuts a template's source into text and the words of its tags, with Jinja's rules for white space around tags.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "typeformer/core/annotate.hpp"
#include "typeformer/text/jinja/value.hpp"
#include "typeformer/text/unicode.hpp"
#include "typeformer/text/utf8.hpp"

namespace typeformer::inline TYPEFORMER_ABI::text::jinja {

/// One word of the source.
struct Word {
  enum class Kind { text, print_begin, print_end, tag_begin, tag_end, name, string, integer, number, sign, end };
  Kind kind = Kind::end;
  std::string text;  ///< of text and string: the value; else as written
  int line = 1;
};

/// What Python's \s and str.strip() take: white space, and the four separators of ASCII.
constexpr bool is_python_space(char32_t code) { return is_space(code) || (code >= 0x1c && code <= 0x1f); }

/// Lexer of Jinja 3 with trim_blocks and lstrip_blocks on, as transformers sets them. Throws Error naming the line.
class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(with_unix_lines(source)) {}

  std::vector<Word> words() {
    while (at_ < source_.size()) text_and_tag();
    add(Word::Kind::end, "");
    return std::move(words_);
  }

 private:
  // \r\n and \r become \n, and one line end at the very end goes.
  static std::string with_unix_lines(std::string_view source) {
    std::string out;
    for (std::size_t i = 0; i < source.size(); ++i) {
      if (source[i] == '\r') {
        out += '\n';
        if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
      } else {
        out += source[i];
      }
    }
    if (out.ends_with('\n')) out.pop_back();
    return out;
  }

  bool follows(std::string_view text, std::size_t ahead = 0) const {
    return std::string_view(source_).substr(std::min(at_ + ahead, source_.size())).starts_with(text);
  }
  void add(Word::Kind kind, std::string text) { words_.push_back({kind, std::move(text), line_}); }
  void advance(std::size_t count) {
    for (std::size_t end = at_ + count; at_ < end; ++at_) line_ += source_[at_] == '\n' ? 1 : 0;
  }
  std::size_t space_length(std::size_t from) const {
    std::size_t end = from;
    while (end < source_.size()) {
      const Utf8Step step = utf8_step(std::string_view(source_).substr(end));
      if (!is_python_space(step.code)) break;
      end += step.length;
    }
    return end - from;
  }

  void text_and_tag() {
    std::size_t open = at_;
    while ((open = source_.find('{', open)) != source_.npos) {
      const char next = open + 1 < source_.size() ? source_[open + 1] : '\0';
      if (next == '{' || next == '%' || next == '#') break;
      ++open;
    }
    if (open == source_.npos) {
      add(Word::Kind::text, source_.substr(at_));
      return advance(source_.size() - at_);
    }
    const char kind = source_[open + 1];
    const char control = open + 2 < source_.size() ? source_[open + 2] : '\0';
    if (std::string text = text_before(open, kind, control); !text.empty()) add(Word::Kind::text, std::move(text));
    advance(open - at_ + 2 + (control == '-' || control == '+' ? 1 : 0));
    if (kind == '#') return comment();
    const bool tag = kind == '%';
    if (tag && is_raw()) return raw();
    add(tag ? Word::Kind::tag_begin : Word::Kind::print_begin, "");
    inside(tag);
  }

  // The text before a tag, less what the tag takes: all white space ('-'), or the indentation of a tag or comment that
  // stands first in its line (lstrip_blocks; not with '+').
  std::string text_before(std::size_t open, char kind, char control) const {
    std::string_view text = std::string_view(source_).substr(at_, open - at_);
    if (control == '-') return std::string(without_space_behind(text));
    if (control == '+' || kind == '{') return std::string(text);
    const std::size_t line_end = text.rfind('\n');
    if (line_end == text.npos && !line_starting_) return std::string(text);
    const std::size_t line = line_end == text.npos ? 0 : line_end + 1;
    const bool blank = without_space_behind(text.substr(line)).empty();
    return std::string(blank ? text.substr(0, line) : text);
  }
  static std::string_view without_space_behind(std::string_view text) {
    while (!text.empty()) {
      std::size_t last = text.size() - 1;
      while (last > 0 && (static_cast<unsigned char>(text[last]) & 0xc0) == 0x80) --last;
      if (!is_python_space(utf8_step(text.substr(last)).code)) break;
      text.remove_suffix(text.size() - last);
    }
    return text;
  }

  // Takes the end of a tag: '-' takes the white space behind it, otherwise a tag or comment takes one line end.
  bool closes(std::string_view end, bool takes_line, bool knows_plus) {
    const bool minus = follows("-") && follows(end, 1), plus = knows_plus && follows("+") && follows(end, 1);
    if (!minus && !plus && !follows(end)) return false;
    const std::size_t begin = at_;
    advance(end.size() + (minus || plus ? 1 : 0));
    if (minus) {
      advance(space_length(at_));
    } else if (takes_line && !plus && follows("\n")) {
      advance(1);
    }
    line_starting_ = at_ > begin && source_[at_ - 1] == '\n';
    return true;
  }

  void comment() {
    const int begin = line_;
    while (!closes("#}", true, true)) {
      if (at_ >= source_.size()) refuse(begin, "'#}' that ends the comment", "the end of the template");
      advance(1);
    }
  }

  bool is_raw() const {
    const std::size_t name = at_ + space_length(at_);
    if (std::string_view(source_).substr(name, 3) != "raw") return false;
    const std::string_view rest = std::string_view(source_).substr(name + 3 + space_length(name + 3));
    return rest.starts_with("%}") || rest.starts_with("-%}");
  }
  void raw() { refuse_unsupported(line_, "the tag 'raw'"); }

  void inside(bool tag) {
    const int begin = line_;
    std::string open_brackets;
    for (;;) {
      advance(space_length(at_));
      if (at_ >= source_.size())
        refuse(begin, tag ? "'%}' that ends the tag" : "'}}' that ends the expression", "the end of the template");
      if (open_brackets.empty()) {
        const int line = line_;
        if (closes(tag ? "%}" : "}}", tag, tag)) {
          words_.push_back({tag ? Word::Kind::tag_end : Word::Kind::print_end, "", line});
          return;
        }
      }
      word(open_brackets);
    }
  }

  static bool is_digit(char c) { return c >= '0' && c <= '9'; }
  static bool begins_name(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

  void word(std::string& open_brackets) {
    const char c = source_[at_];
    std::size_t length = 1;
    if (begins_name(c)) {
      while (at_ + length < source_.size() && (begins_name(source_[at_ + length]) || is_digit(source_[at_ + length])))
        ++length;
      add(Word::Kind::name, source_.substr(at_, length));
    } else if (is_digit(c)) {
      return number();
    } else if (c == '\'' || c == '"') {
      return string(c);
    } else {
      for (const std::string_view two : {"//", "**", "==", "!=", ">=", "<="}) {
        if (follows(two)) length = 2;
      }
      constexpr std::string_view signs = "+-/*%~[](){}=<>.:|,;";
      if (length == 1 && signs.find(c) == signs.npos) {
        refuse(line_, "Jinja's signs, ASCII names, numbers and strings",
               "'" + source_.substr(at_, utf8_step(std::string_view(source_).substr(at_)).length) + "'");
      }
      balance(c, open_brackets);
      add(Word::Kind::sign, source_.substr(at_, length));
    }
    advance(length);
  }

  void balance(char c, std::string& open_brackets) const {
    if (c == '(') open_brackets += ')';
    if (c == '[') open_brackets += ']';
    if (c == '{') open_brackets += '}';
    if (c != ')' && c != ']' && c != '}') return;
    if (open_brackets.empty() || open_brackets.back() != c)
      refuse(line_, "brackets in pairs", "'" + std::string(1, c) + "'");
    open_brackets.pop_back();
  }

  // 12, 1.5, 1e-3. Other forms (0x10, 1_000) are not used by templates.
  void number() {
    std::size_t end = at_;
    const auto digits = [&] {
      const std::size_t begin = end;
      while (end < source_.size() && is_digit(source_[end])) ++end;
      return end > begin;
    };
    digits();
    Word::Kind kind = Word::Kind::integer;
    const std::size_t integer_end = end;
    const bool after_dot = at_ > 0 && source_[at_ - 1] == '.';
    if (!after_dot && end < source_.size() && source_[end] == '.') {
      ++end;
      if (digits()) {
        kind = Word::Kind::number;
      } else {
        end = integer_end;
      }
    }
    if (!after_dot && end < source_.size() && (source_[end] == 'e' || source_[end] == 'E')) {
      const std::size_t mantissa_end = end++;
      if (end < source_.size() && (source_[end] == '+' || source_[end] == '-')) ++end;
      if (digits()) {
        kind = Word::Kind::number;
      } else {
        end = mantissa_end;
      }
    }
    const bool odd = (end < source_.size() && begins_name(source_[end])) ||
                     (kind == Word::Kind::integer && end - at_ > 1 && source_[at_] == '0');
    if (odd) refuse_unsupported(line_, "a number of the form '" + source_.substr(at_, end - at_ + 1) + "'");
    add(kind, source_.substr(at_, end - at_));
    advance(end - at_);
  }

  void string(char mark) {
    const int begin = line_;
    std::string value;
    std::size_t at = at_ + 1;
    for (;; ++at) {
      if (at >= source_.size()) refuse(begin, "the end of the string", "the end of the template");
      if (source_[at] == mark) break;
      if (source_[at] == '\\' && at + 1 < source_.size()) {
        at = escape(at + 1, value);
      } else {
        value += source_[at];
      }
    }
    add(Word::Kind::string, std::move(value));
    advance(at + 1 - at_);
  }

  // Python's escapes; `at` is behind the backslash. Returns the last position taken.
  std::size_t escape(std::size_t at, std::string& value) const {
    constexpr std::string_view names = "\\'\"abfnrtv", values = "\\'\"\a\b\f\n\r\t\v";
    const char c = source_[at];
    if (const std::size_t named = names.find(c); named != names.npos) {
      value += values[named];
      return at;
    }
    if (c == '\n') return at;  // a line that goes on
    const std::size_t digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
    if (is_digit(c) || c == 'N') refuse_unsupported(line_, "the escape '\\" + std::string(1, c) + "'");
    if (digits == 0) {
      value.append("\\").push_back(c);
      return at;
    }
    char32_t code = 0;
    for (std::size_t i = 1; i <= digits; ++i) {
      constexpr std::string_view hex = "0123456789abcdef";
      const char digit = at + i < source_.size() ? source_[at + i] : '\0';
      const std::size_t worth = hex.find(begins_name(digit) ? static_cast<char>(digit | 0x20) : digit);
      if (digit == '\0' || worth == hex.npos) refuse(line_, "hexadecimal digits", "an escape that is cut short");
      code = code * 16 + static_cast<char32_t>(worth);
    }
    if (code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff))
      refuse(line_, "an escape that names a character", "a surrogate or more than U+10FFFF");
    append_utf8(value, code);
    return at + digits;
  }

  std::string source_;
  std::vector<Word> words_;
  std::size_t at_ = 0;
  int line_ = 1;
  bool line_starting_ = true;  // what comes next begins a line
};

}  // namespace typeformer
