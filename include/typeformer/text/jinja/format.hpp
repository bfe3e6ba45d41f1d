/// Values as text: Python's str and repr, and JSON.
#pragma once
#include <charconv>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>

#include "typeformer/core/annotate.hpp"
#include "typeformer/text/jinja/value.hpp"
#include "typeformer/text/unicode.hpp"
#include "typeformer/text/utf8.hpp"

namespace typeformer::inline TYPEFORMER_ABI::text::jinja {

/// The shortest decimal that reads back as the same double, written as Python does: with exponent below 1e-4 and from
/// 1e16 on, and never without a point or exponent.
inline std::string number_text(double number) {
  if (std::isnan(number)) return "nan";
  if (std::isinf(number)) return number > 0 ? "inf" : "-inf";
  const double size = std::fabs(number);
  const bool exponent = size != 0 && (size < 1e-4 || size >= 1e16);
  char buffer[64];
  const auto format = exponent ? std::chars_format::scientific : std::chars_format::fixed;
  std::string text(buffer, std::to_chars(buffer, buffer + sizeof buffer, number, format).ptr);
  return exponent || text.find('.') != text.npos ? text : text + ".0";
}

inline void append_hex(std::string& out, char32_t code, int digits) {
  for (int shift = 4 * (digits - 1); shift >= 0; shift -= 4) out += "0123456789abcdef"[(code >> shift) & 15];
}

/// Python's repr of a string.
inline std::string python_quoted(std::string_view text) {
  const bool apostrophe = text.find('\'') != text.npos, quote = text.find('"') != text.npos;
  const char mark = apostrophe && !quote ? '"' : '\'';
  std::string out(1, mark);
  for (std::size_t at = 0; at < text.size();) {
    const Utf8Step step = utf8_step(text.substr(at));
    const std::string_view category = general_category(step.code);
    const bool printable = step.code == ' ' || (category[0] != 'C' && category[0] != 'Z');
    constexpr std::string_view named = "\n\r\t", letters = "nrt";
    if (step.code < 0x80 && named.find(static_cast<char>(step.code)) != named.npos) {
      out.append("\\").push_back(letters[named.find(static_cast<char>(step.code))]);
    } else if (step.code == static_cast<unsigned char>(mark) || step.code == '\\') {
      out.append("\\").push_back(static_cast<char>(step.code));
    } else if (printable) {
      out.append(text, at, step.length);
    } else {
      const int digits = step.code < 0x100 ? 2 : step.code < 0x10000 ? 4 : 8;
      out += digits == 2 ? "\\x" : digits == 4 ? "\\u" : "\\U";
      append_hex(out, step.code, digits);
    }
    at += step.length;
  }
  return out + mark;
}

std::string repr(const Value& value, int line);

/// What a template prints for the value: Python's str; "" for undefined.
inline std::string to_text(const Value& value, int line) {
  if (const std::string* text = value.string()) return *text;
  return value.is_undefined() ? "" : repr(value, line);
}

/// Python's repr. Throws Error for namespaces, loops and functions.
inline std::string repr(const Value& value, int line) {
  if (value.is_undefined()) return "Undefined";
  if (value.is_none()) return "None";
  if (const bool* flag = value.get_if<bool>()) return *flag ? "True" : "False";
  if (const auto* number = value.get_if<std::int64_t>()) return std::to_string(*number);
  if (const auto* number = value.get_if<double>()) return number_text(*number);
  if (const std::string* text = value.string()) return python_quoted(*text);
  std::string out;
  if (const Value::List* list = value.list()) {
    for (const Value& item : list->items) out.append(out.empty() ? "" : ", ").append(repr(item, line));
    if (list->is_tuple) return "(" + out + (list->items.size() == 1 ? ",)" : ")");
    return "[" + out + "]";
  }
  if (const Value::Dict* dict = value.dict()) {
    for (const auto& [key, item] : dict->items) {
      out.append(out.empty() ? "" : ", ").append(python_quoted(key)).append(": ").append(repr(item, line));
    }
    return "{" + out + "}";
  }
  refuse(line, "a value that can be printed", value.kind());
}

/// How tojson writes: Python's json.dumps.
struct JsonStyle {
  bool ascii = false;  ///< everything beyond ASCII as \uXXXX
  int indent = -1;     ///< spaces a level; -1: all on one line
};

inline void append_json_string(std::string& out, std::string_view text, bool ascii) {
  out += '"';
  for (std::size_t at = 0; at < text.size();) {
    const Utf8Step step = utf8_step(text.substr(at));
    constexpr std::string_view named = "\"\\\n\r\t\b\f", letters = "\"\\nrtbf";
    if (step.code < 0x80 && named.find(static_cast<char>(step.code)) != named.npos) {
      out.append("\\").push_back(letters[named.find(static_cast<char>(step.code))]);
    } else if (step.code >= 0x20 && (!ascii || step.code < 0x7f)) {
      out.append(text, at, step.length);
    } else if (step.code == 0x7f) {
      out += '\x7f';
    } else if (step.code < 0x10000) {
      append_hex(out += "\\u", step.code, 4);
    } else {
      append_hex(out += "\\u", 0xd800 + ((step.code - 0x10000) >> 10), 4);
      append_hex(out += "\\u", 0xdc00 + ((step.code - 0x10000) & 0x3ff), 4);
    }
    at += step.length;
  }
  out += '"';
}

/// Appends the value as JSON. Throws Error for what JSON cannot hold.
inline void append_json(std::string& out, const Value& value, const JsonStyle& style, int line, int level = 0) {
  const auto new_line = [&](int depth) {
    if (style.indent >= 0) out.append("\n").append(static_cast<std::size_t>(style.indent * depth), ' ');
  };
  const auto separate = [&](bool first) {
    if (!first) out += style.indent >= 0 ? "," : ", ";
    new_line(level + 1);
  };
  if (value.is_none()) {
    out += "null";
  } else if (const bool* flag = value.get_if<bool>()) {
    out += *flag ? "true" : "false";
  } else if (const auto* integer = value.get_if<std::int64_t>()) {
    out += std::to_string(*integer);
  } else if (const auto* number = value.get_if<double>()) {
    out += std::isnan(*number)   ? "NaN"
           : std::isinf(*number) ? (*number > 0 ? "Infinity" : "-Infinity")
                                 : number_text(*number);
  } else if (const std::string* text = value.string()) {
    append_json_string(out, *text, style.ascii);
  } else if (const Value::List* list = value.list()) {
    out += '[';
    for (std::size_t i = 0; i < list->items.size(); ++i) {
      separate(i == 0);
      append_json(out, list->items[i], style, line, level + 1);
    }
    if (!list->items.empty()) new_line(level);
    out += ']';
  } else if (const Value::Dict* dict = value.dict()) {
    out += '{';
    for (std::size_t i = 0; i < dict->items.size(); ++i) {
      separate(i == 0);
      append_json_string(out, dict->items[i].first, style.ascii);
      out += ": ";
      append_json(out, dict->items[i].second, style, line, level + 1);
    }
    if (!dict->items.empty()) new_line(level);
    out += '}';
  } else {
    refuse(line, "a value that JSON can hold", value.kind());
  }
}

}  // namespace typeformer
