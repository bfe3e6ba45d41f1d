/// Python's operators on template values.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "typeformer/core/annotate.hpp"
#include "typeformer/text/jinja/format.hpp"
#include "typeformer/text/jinja/value.hpp"
#include "typeformer/text/utf8.hpp"

namespace typeformer::inline TYPEFORMER_ABI::text::jinja {

/// Where an operation happens and what it may cost.
struct Site {
  Budget& budget;
  int line;
};

/// Refuses to work with what does not exist, saying what that is.
inline void require_defined(const Value& value, int line) {
  if (const auto* missing = value.get_if<Value::Undefined>())
    refuse(line, "a value", missing->what + ", which is undefined");
}

inline std::size_t code_points(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

/// The characters of a string, each a view into it.
inline std::vector<std::string_view> characters(std::string_view text) {
  std::vector<std::string_view> out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = utf8_step(text.substr(at)).length;
    out.push_back(text.substr(at, length));
    at += length;
  }
  return out;
}

/// What a for loop goes over: the items, the keys, or the characters; nothing for undefined.
inline std::vector<Value> iterate(const Value& value, Site site) {
  std::vector<Value> out;
  if (const Value::List* list = value.list()) {
    out = list->items;
  } else if (const Value::Dict* dict = value.dict()) {
    for (const auto& item : dict->items) out.emplace_back(item.first);
  } else if (const std::string* text = value.string()) {
    site.budget.charge(text->size(), site.line);
    for (const std::string_view character : characters(*text)) out.emplace_back(std::string(character));
  } else if (!value.is_undefined()) {
    refuse(site.line, "something to go over", value.kind());
  }
  site.budget.charge(Budget::element * out.size(), site.line);
  return out;
}

/// a == b. Numbers compare by value (True == 1), everything else only with its own kind.
inline bool equal(const Value& a, const Value& b, Site site) {
  site.budget.charge(1, site.line);
  if (a.is_number() && b.is_number()) {
    std::int64_t x = 0, y = 0;
    if (a.integer(x) != nullptr && b.integer(y) != nullptr) return x == y;
    return a.real() == b.real();
  }
  if (a.string() != nullptr && b.string() != nullptr) return *a.string() == *b.string();
  if (const Value::List* x = a.list(), *y = b.list(); x != nullptr && y != nullptr) {
    return x->is_tuple == y->is_tuple && std::equal(x->items.begin(), x->items.end(), y->items.begin(), y->items.end(),
                                                    [&](const Value& p, const Value& q) { return equal(p, q, site); });
  }
  if (const Value::Dict* x = a.dict(), *y = b.dict(); x != nullptr && y != nullptr) {
    site.budget.charge(x->items.size() * y->items.size(), site.line);
    return x->items.size() == y->items.size() && std::all_of(x->items.begin(), x->items.end(), [&](const auto& item) {
             const Value* other = y->find(item.first);
             return other != nullptr && equal(item.second, *other, site);
           });
  }
  return (a.is_none() && b.is_none()) || (a.is_undefined() && b.is_undefined()) ||
         (a.name_space() != nullptr && a.name_space() == b.name_space());
}

/// needle in haystack: a member, a key, or a part of a string.
inline bool contains(const Value& haystack, const Value& needle, Site site) {
  if (const std::string* text = haystack.string()) {
    require_defined(needle, site.line);
    if (needle.string() == nullptr) refuse(site.line, "a string to look for in a string", needle.kind());
    site.budget.charge(text->size(), site.line);
    return text->find(*needle.string()) != std::string::npos;
  }
  if (const Value::Dict* dict = haystack.dict()) {
    site.budget.charge(dict->items.size(), site.line);
    return needle.string() != nullptr && dict->find(*needle.string()) != nullptr;
  }
  const std::vector<Value> items = iterate(haystack, site);
  return std::any_of(items.begin(), items.end(), [&](const Value& item) { return equal(item, needle, site); });
}

/// a < b, for numbers and for strings by code points. Throws Error for other kinds.
inline bool less(const Value& a, const Value& b, Site site) {
  require_defined(a, site.line);
  require_defined(b, site.line);
  if (a.string() != nullptr && b.string() != nullptr)
    return *a.string() < *b.string();  // UTF-8 sorts as code points do
  if (!a.is_number() || !b.is_number())
    refuse(site.line, "two numbers or two strings to compare", std::string(a.kind()) + " and " + std::string(b.kind()));
  std::int64_t x = 0, y = 0;
  if (a.integer(x) != nullptr && b.integer(y) != nullptr) return x < y;
  return a.real() < b.real();
}

/// One comparison by its sign.
inline bool compare(std::string_view sign, const Value& a, const Value& b, Site site) {
  if (sign == "==") return equal(a, b, site);
  if (sign == "!=") return !equal(a, b, site);
  if (sign == "in") return contains(b, a, site);
  if (sign == "not in") return !contains(b, a, site);
  if (sign == "<") return less(a, b, site);
  if (sign == ">") return less(b, a, site);
  const bool either_nan = a.is_number() && b.is_number() && (std::isnan(a.real()) || std::isnan(b.real()));
  return !either_nan && !(sign == "<=" ? less(b, a, site) : less(a, b, site));
}

/// Arithmetic of integers with Python's rounding towards minus infinity. Throws Error where 64 bits do not suffice.
inline Value integer_operation(char sign, std::int64_t a, std::int64_t b, int line) {
  std::int64_t result = 0;
  bool overflow = false;
  if (sign == '+') overflow = __builtin_add_overflow(a, b, &result);
  if (sign == '-') overflow = __builtin_sub_overflow(a, b, &result);
  if (sign == '*') overflow = __builtin_mul_overflow(a, b, &result);
  if (sign == 'f' || sign == '%') {
    if (b == 0) refuse(line, "a divisor that is not zero", "zero");
    if (b == -1) {  // the one quotient that can overflow
      overflow = sign == 'f' && __builtin_sub_overflow(std::int64_t{0}, a, &result);
    } else {
      const std::int64_t quotient = a / b, rest = a % b;
      const bool below = rest != 0 && (rest < 0) != (b < 0);
      result = sign == 'f' ? quotient - (below ? 1 : 0) : rest + (below ? b : 0);
    }
  }
  if (overflow) refuse(line, "an integer of 64 bits", "a larger one");
  return Value(result);
}

inline Value real_operation(std::string_view sign, double a, double b, int line) {
  if (sign == "+") return Value(a + b);
  if (sign == "-") return Value(a - b);
  if (sign == "*") return Value(a * b);
  if (b == 0) refuse(line, "a divisor that is not zero", "zero");
  if (sign == "/") return Value(a / b);
  double rest = std::fmod(a, b);
  double quotient = (a - rest) / b;
  if (rest != 0 && (rest < 0) != (b < 0)) {
    rest += b;
    quotient -= 1;
  }
  if (rest == 0) rest = std::copysign(0.0, b);
  if (sign == "%") return Value(rest);
  // Python rounds the quotient to the nearest whole number after this division.
  double whole = quotient == 0 ? std::copysign(0.0, a / b) : std::floor(quotient);
  if (quotient - whole > 0.5) whole += 1;
  return Value(whole);
}

/// text or list, count times.
inline Value repeated(const Value& value, std::int64_t count, Site site) {
  const auto times = static_cast<std::uint64_t>(std::max<std::int64_t>(count, 0));
  const std::size_t size = value.string() != nullptr ? value.string()->size() : value.list()->items.size();
  if (size > 0 && times > (std::uint64_t{1} << 30)) site.budget.charge(~std::uint64_t{0}, site.line);
  site.budget.charge((value.string() != nullptr ? 1 : Budget::element) * size * times, site.line);
  if (const std::string* text = value.string()) {
    std::string out;
    for (std::uint64_t i = 0; i < times && size > 0; ++i) out += *text;
    return Value(std::move(out));
  }
  std::vector<Value> items;
  for (std::uint64_t i = 0; i < times && size > 0; ++i)
    items.insert(items.end(), value.list()->items.begin(), value.list()->items.end());
  return make_list(std::move(items), site.line, value.list()->is_tuple);
}

/// a sign b for + - * / // % and ~ (both as text, one after the other).
inline Value binary(std::string_view sign, const Value& a, const Value& b, Site site) {
  if (sign == "~") {
    std::string text = to_text(a, site.line) + to_text(b, site.line);
    site.budget.charge(text.size(), site.line);
    return Value(std::move(text));
  }
  require_defined(a, site.line);
  require_defined(b, site.line);
  std::int64_t x = 0, y = 0;
  const bool x_whole = a.integer(x) != nullptr, y_whole = b.integer(y) != nullptr;
  if (x_whole && y_whole && sign != "/") return integer_operation(sign == "//" ? 'f' : sign[0], x, y, site.line);
  if (a.is_number() && b.is_number()) return real_operation(sign, a.real(), b.real(), site.line);
  if (sign == "+" && a.string() != nullptr && b.string() != nullptr) {
    site.budget.charge(a.string()->size() + b.string()->size(), site.line);
    return Value(*a.string() + *b.string());
  }
  if (sign == "+" && a.list() != nullptr && b.list() != nullptr && a.list()->is_tuple == b.list()->is_tuple) {
    site.budget.charge(Budget::element * (a.list()->items.size() + b.list()->items.size()), site.line);
    std::vector<Value> items = a.list()->items;
    items.insert(items.end(), b.list()->items.begin(), b.list()->items.end());
    return make_list(std::move(items), site.line, a.list()->is_tuple);
  }
  if (sign == "*" && y_whole && (a.string() != nullptr || a.list() != nullptr)) return repeated(a, y, site);
  if (sign == "*" && x_whole && (b.string() != nullptr || b.list() != nullptr)) return repeated(b, x, site);
  if (sign == "%" && a.string() != nullptr) refuse_unsupported(site.line, "formatting with '%'");
  refuse(site.line, "operands that '" + std::string(sign) + "' takes",
         std::string(a.kind()) + " and " + std::string(b.kind()));
}

/// container[index]: a member, a character, or undefined when there is none.
inline Value item_of(const Value& container, const Value& index, Site site) {
  require_defined(container, site.line);
  const Value missing = Value::Undefined{"the element " + repr(index, site.line)};
  if (const Value::Dict* dict = container.dict()) {
    site.budget.charge(dict->items.size(), site.line);
    const Value* found = index.string() != nullptr ? dict->find(*index.string()) : nullptr;
    return found != nullptr ? *found : missing;
  }
  std::int64_t position = 0;
  if (index.integer(position) == nullptr) return missing;
  if (const Value::List* list = container.list()) {
    const auto size = static_cast<std::int64_t>(list->items.size());
    if (position < 0) position += size;
    return position >= 0 && position < size ? list->items[static_cast<std::size_t>(position)] : missing;
  }
  if (const std::string* text = container.string()) {
    site.budget.charge(text->size(), site.line);
    const std::vector<std::string_view> all = characters(*text);
    const auto size = static_cast<std::int64_t>(all.size());
    if (position < 0) position += size;
    return position >= 0 && position < size ? Value(std::string(all[static_cast<std::size_t>(position)])) : missing;
  }
  return missing;
}

/// The positions that [start:stop:step] takes of `size` elements. Python's slice.indices.
inline std::vector<std::size_t> slice_positions(std::int64_t size, std::optional<std::int64_t> start,
                                                std::optional<std::int64_t> stop, std::int64_t step) {
  const std::int64_t low = step > 0 ? 0 : -1, high = step > 0 ? size : size - 1;
  const auto clamp = [&](std::int64_t at) { return std::clamp(at < 0 ? at + size : at, low, high); };
  const std::int64_t first = start ? clamp(std::max(*start, -size - 1)) : step > 0 ? low : high;
  const std::int64_t last = stop ? clamp(std::max(*stop, -size - 1)) : step > 0 ? high : low;
  std::vector<std::size_t> positions;
  const std::int64_t stride = std::clamp(step, -size - 1, size + 1);
  for (std::int64_t at = first; step > 0 ? at < last : at > last; at += stride)
    positions.push_back(static_cast<std::size_t>(at));
  return positions;
}

/// container[start:stop:step] of a list, tuple or string.
inline Value slice_of(const Value& container, std::optional<std::int64_t> start, std::optional<std::int64_t> stop,
                      std::int64_t step, Site site) {
  require_defined(container, site.line);
  if (step == 0) refuse(site.line, "a slice step that is not zero", "zero");
  if (const Value::List* list = container.list()) {
    std::vector<Value> items;
    site.budget.charge(Budget::element * list->items.size(), site.line);
    for (const std::size_t at : slice_positions(static_cast<std::int64_t>(list->items.size()), start, stop, step))
      items.push_back(list->items[at]);
    return make_list(std::move(items), site.line, list->is_tuple);
  }
  if (const std::string* text = container.string()) {
    std::string out;
    site.budget.charge(text->size(), site.line);
    const std::vector<std::string_view> all = characters(*text);
    for (const std::size_t at : slice_positions(static_cast<std::int64_t>(all.size()), start, stop, step))
      out += all[at];
    return Value(std::move(out));
  }
  refuse(site.line, "a list or string to slice", container.kind());
}

}  // namespace typeformer
