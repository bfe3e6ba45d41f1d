/// Text for machines: JSON, written piece by piece.
#pragma once
#include <charconv>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>

#include "typeformer/core/annotate.hpp"

namespace typeformer::inline TYPEFORMER_ABI::detail {

/// Writes one JSON value; commas come by themselves. Strings are taken as UTF-8.
class JsonText {
 public:
  JsonText& begin_object() { return open('{'); }
  JsonText& end_object() { return close('}'); }
  JsonText& begin_array() { return open('['); }
  JsonText& end_array() { return close(']'); }
  JsonText& key(std::string_view name) {
    separate();
    quote(name);
    text_ += ": ";
    first_ = true;
    return *this;
  }
  JsonText& value(std::string_view v) {
    separate();
    quote(v);
    return *this;
  }
  JsonText& value(const char* v) { return value(std::string_view(v)); }
  JsonText& value(bool v) { return raw(v ? "true" : "false"); }
  JsonText& value(int v) { return raw(std::to_string(v)); }
  JsonText& value(std::int64_t v) { return raw(std::to_string(v)); }
  /// The shortest digits that read back the same; null for what JSON has no number for.
  JsonText& value(double v) {
    if (!std::isfinite(v)) return raw("null");
    char digits[32];
    return raw({digits, std::to_chars(digits, digits + sizeof digits, v).ptr});
  }
  template <class T>
  JsonText& field(std::string_view name, const T& v) {
    return key(name).value(v);
  }
  const std::string& text() const { return text_; }

 private:
  JsonText& open(char bracket) {
    separate();
    text_ += bracket;
    first_ = true;
    return *this;
  }
  JsonText& close(char bracket) {
    text_ += bracket;
    first_ = false;
    return *this;
  }
  JsonText& raw(std::string_view v) {
    separate();
    text_ += v;
    return *this;
  }
  void separate() {
    if (!first_) text_ += ", ";
    first_ = false;
  }
  void quote(std::string_view v) {
    constexpr std::string_view digits = "0123456789abcdef";
    text_ += '"';
    for (const char c : v) {
      const auto byte = static_cast<unsigned char>(c);
      if (c == '"' || c == '\\')
        (text_ += '\\') += c;
      else if (byte < 0x20)
        ((text_ += "\\u00") += digits[byte >> 4]) += digits[byte & 15];
      else
        text_ += c;
    }
    text_ += '"';
  }
  std::string text_;
  bool first_ = true;
};

}  // namespace typeformer
