/// Split patterns of tokenizer.json are written for Oniguruma; this turns them into patterns for PCRE2.
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "typeformer/core/annotate.hpp"
#include "typeformer/core/error.hpp"
#include "typeformer/text/unicode.hpp"
#include "typeformer/text/utf8.hpp"

namespace typeformer::inline TYPEFORMER_ABI::text {

/// Translates a pattern of Oniguruma's Ruby syntax, the one split patterns are written in, into PCRE2 syntax of equal
/// meaning. The two agree on most of it; where they do not, the result is spelled out (\s without U+180E, properties
/// of Unicode 16, nested classes) or the construct is refused. Throws Error naming a construct that it does not know.
class PatternTranslator {
 public:
  PatternTranslator(std::string_view source, std::string_view where) : source_(source), where_(where) {}

  std::string translate() {
    while (at_ < source_.size()) element();
    return std::move(out_);
  }

  static constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
  static constexpr bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

 private:
  [[noreturn]] void refuse(std::string_view what) const {
    throw Error("Tokenizer", where_, "a supported split pattern",
                std::string(what) + " at byte " + std::to_string(at_) + " of '" + std::string(source_) + "'");
  }
  char peek(std::size_t ahead = 0) const { return at_ + ahead < source_.size() ? source_[at_ + ahead] : '\0'; }
  bool follows(std::string_view text) const { return source_.substr(at_).starts_with(text); }

  void element() {
    switch (peek()) {
      case '\\':
        return escape();
      case '[':
        return bracket();
      case '(':
        return group();
      case ')':
        if (groups_ignoring_case_.empty()) refuse("')' without '('");
        groups_ignoring_case_.pop_back();
        break;
      case '{':
        return interval();
      default:
        break;
    }
    if (follows("+{") || follows("*{") || follows("?{")) refuse("an interval after another quantifier");
    out_ += source_[at_++];
  }

  void group() {
    static constexpr std::array<std::string_view, 7> known = {"(?:", "(?=", "(?!", "(?<=", "(?<!", "(?>", "(?i:"};
    std::string_view opening = "(";
    if (peek(1) == '?') {
      const auto* found = std::find_if(known.begin(), known.end(), [&](std::string_view k) { return follows(k); });
      if (found == known.end()) refuse("a group of unsupported kind");
      opening = *found;
    } else if (peek(1) == '*') {
      refuse("'(*'");
    }
    const bool inherited = !groups_ignoring_case_.empty() && groups_ignoring_case_.back();
    groups_ignoring_case_.push_back(inherited || opening == "(?i:");
    out_ += opening;
    at_ += opening.size();
  }

  // {n}, {n,} and {n,m}. What may follow differs: {n}? and {n}+ mean other things in the two syntaxes.
  void interval() {
    std::size_t i = 1;
    while (is_digit(peek(i))) ++i;
    bool valid = i > 1;
    if (peek(i) == ',') {
      ++i;
      while (is_digit(peek(i))) ++i;
    }
    valid = valid && peek(i) == '}';
    if (!valid) refuse("'{' that begins no interval");
    ++i;
    if (peek(i) == '+' || peek(i) == '?' || peek(i) == '{') refuse("a quantifier after an interval");
    out_ += source_.substr(at_, i);
    at_ += i;
  }

  void escape() {
    const char kind = peek(1);
    switch (kind) {
      case 's':
        return short_class("[", space);
      case 'S':
        return short_class("[^", space);
      case 'd':
        return short_class("[", property("Nd"));
      case 'D':
        return short_class("[^", property("Nd"));
      case 'p':
      case 'P': {
        bool negated = false;
        const std::string inside = property_escape(negated);
        out_ += negated ? "[^" : "[";
        out_ += inside + "]";
        return;
      }
      default:
        out_ += literal(escaped_character());
        return;
    }
  }
  void short_class(std::string_view opening, std::string_view inside) {
    at_ += 2;
    out_.append(opening).append(inside).append("]");
  }

  // The character of \n, \x41, \x{41}, \u0041, \. and the like; `at_` is at the backslash and moves behind it.
  char32_t escaped_character() {
    const char kind = peek(1);
    constexpr std::string_view names = "nrtfvae", values = "\n\r\t\f\v\a\x1b";
    if (const std::size_t named = names.find(kind); kind != '\0' && named != names.npos) {
      at_ += 2;
      return static_cast<unsigned char>(values[named]);
    }
    if (kind == 'x' && peek(2) == '{') return hexadecimal(3, 1, 6, true);
    if (kind == 'x') return hexadecimal(2, 2, 2, false);
    if (kind == 'u') return hexadecimal(2, 4, 4, false);
    if (kind == '\0' || is_letter(kind) || is_digit(kind)) refuse("the escape \\" + std::string(1, kind));
    ++at_;
    return character();
  }
  char32_t hexadecimal(std::size_t skip, std::size_t least, std::size_t most, bool braced) {
    char32_t code = 0;
    std::size_t digits = 0;
    for (; digits < most; ++digits) {
      constexpr std::string_view hex = "0123456789abcdef";
      const char c = peek(skip + digits);
      const std::size_t value = hex.find(is_letter(c) ? static_cast<char>(c | 0x20) : c);
      if (c == '\0' || value == hex.npos) break;
      code = code * 16 + static_cast<char32_t>(value);
    }
    const bool closed = !braced || peek(skip + digits) == '}';
    if (digits < least || !closed || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff))
      refuse("a bad hexadecimal escape");
    at_ += skip + digits + (braced ? 1 : 0);
    return code;
  }
  char32_t character() {
    const Utf8Step step = utf8_step(source_.substr(at_));
    if (!step.valid) refuse("bytes that are not UTF-8");
    at_ += step.length;
    return step.code;
  }

  static std::string literal(char32_t code) {
    if (code < 0x80 && (is_letter(static_cast<char>(code)) || is_digit(static_cast<char>(code)))) {
      return std::string(1, static_cast<char>(code));
    }
    constexpr std::string_view hex = "0123456789abcdef";
    std::string digits;
    for (char32_t rest = code; rest != 0 || digits.empty(); rest /= 16) digits.insert(digits.begin(), hex[rest % 16]);
    return "\\x{" + digits + "}";
  }

  // \p{..} or \P{..} at `at_`: the inside of a class.
  std::string property_escape(bool& negated) {
    const std::size_t closing = source_.find('}', at_);
    if (peek(2) != '{' || closing == source_.npos) refuse("a property without braces");
    std::string_view name = source_.substr(at_ + 3, closing - at_ - 3);
    negated = peek(1) == 'P';
    if (name.starts_with('^')) {
      negated = !negated;
      name.remove_prefix(1);
    }
    std::string inside = property(name);
    at_ = closing + 1;
    return inside;
  }

  // A general category, of one letter or two, as Unicode 16 has it.
  std::string property(std::string_view name) const {
    static constexpr std::array<std::string_view, 31> known = {
        "L",  "Lu", "Ll", "Lt", "Lm", "Lo", "M", "Mn", "Mc", "Me", "N",  "Nd", "Nl", "No", "P", "Pc",
        "Pd", "Ps", "Pe", "Pi", "Pf", "Po", "S", "Sm", "Sc", "Sk", "So", "Z",  "Zs", "Zl", "Zp"};
    if (std::find(known.begin(), known.end(), name) == known.end()) refuse("the property " + std::string(name));
    const bool cased = name == "Lu" || name == "Ll" || name == "Lt";
    if (cased && !groups_ignoring_case_.empty() && groups_ignoring_case_.back()) refuse("a cased property inside (?i:");
    // Plain letters and digits go first: they are found in a bitmap before any table is asked.
    std::string out = name == "L" ? "A-Za-z" : name == "N" || name == "Nd" ? "0-9" : "";
    out += "\\p{" + std::string(name) + "}";
    for (const UnicodeRange& range : newer_unicode) {
      if (std::string_view(range.category, 2).starts_with(name))
        out += literal(range.first) + "-" + literal(range.last);
    }
    return out;
  }

  // [...]: nested classes are unions in Ruby's syntax and are written out flat.
  void bracket() {
    ++at_;
    out_ += '[';
    if (peek() == '^') {
      out_ += '^';
      ++at_;
    }
    if (peek() == ']') refuse("a class that begins with ']'");
    class_items();
    out_ += ']';
  }
  void class_items() {
    std::size_t depth = 1;
    bool after_character = false;  // a range can begin at what came last
    while (depth > 0) {
      if (at_ >= source_.size()) refuse("a class that is not closed");
      if (follows("[:") || follows("[^") || follows("[]") || follows("&&"))
        refuse("a class with '[:', '[^', '[]' or '&&'");
      if (peek() == '[' || peek() == ']') {
        depth += peek() == '[' ? 1u : ~std::size_t{0};
        ++at_;
        after_character = false;
      } else if (peek() == '-' && after_character && peek(1) != ']' && peek(1) != '[') {
        ++at_;
        if (peek() == '\\' && is_letter(peek(1)) &&
            std::string_view("pPsSdDwWhH").find(peek(1)) != std::string_view::npos) {
          refuse("a range that ends in a class");
        }
        out_ += "-" + literal(class_character());
        after_character = false;
      } else if (peek() == '\\' && (peek(1) == 's' || peek(1) == 'd')) {
        out_ += peek(1) == 's' ? std::string(space) : property("Nd");
        at_ += 2;
        after_character = false;
      } else if (peek() == '\\' && (peek(1) == 'p' || peek(1) == 'P')) {
        bool negated = false;
        out_ += property_escape(negated);
        if (negated) refuse("a negated property inside a class");
        after_character = false;
      } else {
        out_ += literal(class_character());
        after_character = true;
      }
    }
  }
  char32_t class_character() { return peek() == '\\' ? escaped_character() : character(); }

  static constexpr std::string_view space = "\\t-\\r\\x{85}\\p{Z}";
  std::string_view source_;
  std::string where_, out_;
  std::size_t at_ = 0;
  std::vector<bool> groups_ignoring_case_;
};

}  // namespace typeformer
