/// The filters, tests, methods and functions that chat templates call.
#pragma once
#include <utf8proc.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "typeformer/core/annotate.hpp"
#include "typeformer/text/jinja/format.hpp"
#include "typeformer/text/jinja/lexer.hpp"
#include "typeformer/text/jinja/operations.hpp"
#include "typeformer/text/jinja/value.hpp"

namespace typeformer::inline TYPEFORMER_ABI::text::jinja {

/// The evaluated arguments of a call. Every access marks its argument as used; finish() refuses what nobody asked for.
class Arguments {
 public:
  Arguments(std::string what, Site site) : what_(std::move(what)), site_(site) {}

  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> named;

  Site site() const { return site_; }
  /// The argument at that position or of that name (an empty name: by position only), or nothing.
  std::optional<Value> find(std::size_t position, std::string_view name) {
    if (position < positional.size()) {
      used_ = std::max(used_, position + 1);
      return positional[position];
    }
    const auto found = std::find_if(named.begin(), named.end(), [&](const auto& item) { return item.first == name; });
    if (name.empty() || found == named.end()) return std::nullopt;
    ++used_named_;
    return found->second;
  }
  Value get(std::size_t position, std::string_view name) {
    if (auto found = find(position, name)) return *found;
    refuse(site_.line, "the argument " + std::to_string(position + 1) + " of " + what_, "none");
  }
  std::string text(std::size_t position, std::string_view name) {
    const Value value = get(position, name);
    require_defined(value, site_.line);
    if (value.string() == nullptr) refuse(site_.line, "a string as argument of " + what_, value.kind());
    return *value.string();
  }
  std::int64_t integer(std::size_t position, std::string_view name, std::int64_t otherwise) {
    const auto value = find(position, name);
    if (!value) return otherwise;
    std::int64_t number = 0;
    if (value->integer(number) == nullptr) refuse(site_.line, "an integer as argument of " + what_, value->kind());
    return number;
  }
  void finish() const {
    if (used_ < positional.size() || used_named_ < named.size())
      refuse(site_.line, "fewer or other arguments of " + what_, "an argument that is not supported");
  }

 private:
  std::string what_;
  Site site_;
  std::size_t used_ = 0, used_named_ = 0;
};

// --- strings ---

/// Upper or lower case, character by character (Unicode's simple mappings; sharp s becomes SS as in Python).
inline std::string in_case(std::string_view text, bool upper) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const Utf8Step step = utf8_step(text.substr(at));
    const auto code = static_cast<utf8proc_int32_t>(step.code);
    if (upper && step.code == 0xdf) {
      out += "SS";
    } else {
      append_utf8(out, static_cast<char32_t>(upper ? utf8proc_toupper(code) : utf8proc_tolower(code)));
    }
    at += step.length;
  }
  return out;
}

inline std::string capitalized(std::string_view text) {
  const std::size_t first = utf8_step(text).length;
  return in_case(text.substr(0, first), true) + in_case(text.substr(first), false);
}

/// The filter title: words begin behind white space and - ( { [ <.
inline std::string title_case(std::string_view text) {
  std::string out;
  bool begins = true;
  for (const std::string_view character : characters(text)) {
    out += in_case(character, begins);
    begins = is_python_space(utf8_step(character).code) ||
             std::string_view("-({[<").find(character) != std::string_view::npos;
  }
  return out;
}

/// Python's strip: white space, or the given characters, off one end or both.
inline std::string stripped(std::string_view text, const std::optional<Value>& what, bool left, bool right, Site site) {
  std::vector<std::string_view> unwanted;
  const bool space = !what || what->is_none();
  if (!space && what->string() == nullptr) refuse(site.line, "a string of characters to strip", what->kind());
  if (!space) unwanted = characters(*what->string());
  site.budget.charge(text.size() + unwanted.size(), site.line);
  const auto goes = [&](std::string_view character) {
    if (space) return is_python_space(utf8_step(character).code);
    return std::find(unwanted.begin(), unwanted.end(), character) != unwanted.end();
  };
  const std::vector<std::string_view> all = characters(text);
  std::size_t begin = 0, end = all.size();
  while (left && begin < end && goes(all[begin])) ++begin;
  while (right && begin < end && goes(all[end - 1])) --end;
  std::string out;
  for (std::size_t i = begin; i < end; ++i) out += all[i];
  return out;
}

inline std::string replaced(std::string_view text, std::string_view from, std::string_view to, std::int64_t most,
                            Site site) {
  std::string out;
  std::size_t at = 0;
  if (from.empty()) refuse_unsupported(site.line, "replacing the empty string");
  for (std::size_t found; most != 0 && (found = text.find(from, at)) != text.npos; --most) {
    out.append(text, at, found - at).append(to);
    at = found + from.size();
    site.budget.charge(to.size() + 1, site.line);
  }
  return out.append(text, at);
}

/// Python's split: at a separator, or at runs of white space when there is none.
inline Value split(std::string_view text, const std::optional<Value>& separator, std::int64_t most, Site site) {
  std::vector<Value> parts;
  site.budget.charge(Budget::element * text.size(), site.line);
  if (separator && !separator->is_none()) {
    if (separator->string() == nullptr || separator->string()->empty())
      refuse(site.line, "a separator that is not empty", separator->kind());
    const std::string& mark = *separator->string();
    for (std::size_t found; most != 0 && (found = text.find(mark)) != text.npos; --most) {
      parts.emplace_back(std::string(text.substr(0, found)));
      text.remove_prefix(found + mark.size());
    }
    parts.emplace_back(std::string(text));
    return make_list(std::move(parts), site.line);
  }
  const auto space = [&](std::size_t at) { return is_python_space(utf8_step(text.substr(at)).code); };
  std::size_t at = 0;
  for (;; --most) {
    while (at < text.size() && space(at)) at += utf8_step(text.substr(at)).length;
    if (at >= text.size()) break;
    std::size_t end = at;
    while (end < text.size() && !space(end)) end += utf8_step(text.substr(end)).length;
    if (most == 0) {
      parts.emplace_back(std::string(text.substr(at)));
      break;
    }
    parts.emplace_back(std::string(text.substr(at, end - at)));
    at = end;
  }
  return make_list(std::move(parts), site.line);
}

/// True when the text begins (ends) with the string, or with one of a tuple of strings.
inline bool touches(std::string_view text, const Value& affix, bool at_begin, Site site) {
  const auto one = [&](const Value& value) {
    if (value.string() == nullptr) refuse(site.line, "a string or a tuple of strings", value.kind());
    return at_begin ? text.starts_with(*value.string()) : text.ends_with(*value.string());
  };
  const Value::List* several = affix.list();
  if (several == nullptr || !several->is_tuple) return one(affix);
  return std::any_of(several->items.begin(), several->items.end(), one);
}

inline Value joined(const Value& values, std::string_view between, Site site) {
  std::string out;
  bool first = true;
  for (const Value& item : iterate(values, site)) {
    if (!first) out += between;
    out += to_text(item, site.line);
    first = false;
    site.budget.charge(between.size() + 1, site.line);
  }
  site.budget.charge(out.size(), site.line);
  return Value(std::move(out));
}

// --- methods ---

/// text.name(arguments). Nothing when strings have no such method here.
inline std::optional<Value> string_method(const std::string& text, std::string_view name, Arguments& in) {
  const Site site = in.site();
  if (name == "strip" || name == "lstrip" || name == "rstrip") {
    return Value(stripped(text, in.find(0, ""), name != "rstrip", name != "lstrip", site));
  }
  if (name == "split") {
    auto separator = in.find(0, "sep");
    return split(text, separator, in.integer(1, "maxsplit", -1), site);
  }
  if (name == "startswith" || name == "endswith")
    return Value(touches(text, in.get(0, ""), name == "startswith", site));
  if (name == "upper" || name == "lower") return Value(in_case(text, name == "upper"));
  if (name == "capitalize") return Value(capitalized(text));
  if (name == "replace") {
    const std::string from = in.text(0, ""), to = in.text(1, "");
    return Value(replaced(text, from, to, in.integer(2, "count", -1), site));
  }
  if (name == "find") {
    const std::size_t found = text.find(in.text(0, ""));
    return Value(found == text.npos ? std::int64_t{-1}
                                    : static_cast<std::int64_t>(code_points(std::string_view(text).substr(0, found))));
  }
  return std::nullopt;
}

inline Value pairs_of(const Value::Dict& dict, Site site) {
  std::vector<Value> pairs;
  site.budget.charge(2 * Budget::element * dict.items.size(), site.line);
  for (const auto& [key, value] : dict.items) pairs.push_back(make_list({Value(key), value}, site.line, true));
  return make_list(std::move(pairs), site.line);
}

/// dict.name(arguments). Nothing when dictionaries have no such method here.
inline std::optional<Value> dict_method(const Value::Dict& dict, std::string_view name, Arguments& in) {
  if (name == "items") return pairs_of(dict, in.site());
  if (name == "keys" || name == "values") {
    std::vector<Value> out;
    for (const auto& [key, value] : dict.items) out.push_back(name == "keys" ? Value(key) : value);
    return make_list(std::move(out), in.site().line);
  }
  if (name == "get") {
    const Value key = in.get(0, "");
    const auto otherwise = in.find(1, "");
    const Value* found = key.string() != nullptr ? dict.find(*key.string()) : nullptr;
    return found != nullptr ? *found : otherwise.value_or(Value());
  }
  return std::nullopt;
}

/// What Python's own types have under a name: a method (true), something that the sandbox hides because it would change
/// the value (false), or nothing. Methods hide a dictionary's keys of the same name.
inline std::optional<bool> python_method(const Value& object, std::string_view name) {
  const auto among = [&](std::string_view names) { return names.find(" " + std::string(name) + " ") != names.npos; };
  if (object.dict() != nullptr) {
    if (among(" copy fromkeys get items keys values ")) return true;
    if (among(" clear pop popitem setdefault update ")) return false;
  }
  if (const Value::List* list = object.list()) {
    if (among(" count index ") || (!list->is_tuple && name == "copy")) return true;
    if (!list->is_tuple && among(" append clear extend insert pop remove reverse sort ")) return false;
  }
  constexpr std::string_view of_strings =
      " capitalize casefold center count encode endswith expandtabs find format format_map index isalnum isalpha "
      "isascii"
      " isdecimal isdigit isidentifier islower isnumeric isprintable isspace istitle isupper join ljust lower lstrip"
      " maketrans partition removeprefix removesuffix replace rfind rindex rjust rpartition rsplit rstrip split"
      " splitlines startswith strip swapcase title translate upper zfill ";
  if (object.string() != nullptr && among(of_strings)) return true;
  return std::nullopt;
}

// --- filters ---

inline Value length_of(const Value& value, int line) {
  std::size_t length = 0;
  if (const std::string* text = value.string()) {
    length = code_points(*text);
  } else if (const Value::List* list = value.list()) {
    length = list->items.size();
  } else if (const Value::Dict* dict = value.dict()) {
    length = dict->items.size();
  } else if (!value.is_undefined()) {
    refuse(line, "something that has a length", value.kind());
  }
  return Value(static_cast<std::int64_t>(length));
}

/// Python's int(value), or `otherwise` where that fails. A text may also be a decimal fraction.
inline Value to_integer(const Value& value, std::int64_t otherwise, Site site) {
  require_defined(value, site.line);
  std::int64_t number = 0;
  if (value.integer(number) != nullptr) return Value(number);
  double real = 0;
  if (value.get_if<double>() != nullptr) {
    real = value.real();
  } else if (const std::string* text = value.string()) {
    std::string digits = stripped(*text, std::nullopt, true, true, site);
    if (digits.starts_with('+') && digits.size() > 1 && digits[1] != '-') digits.erase(0, 1);
    const char *begin = digits.data(), *end = begin + digits.size();
    if (const auto [at, error] = std::from_chars(begin, end, number); error == std::errc{} && at == end)
      return Value(number);
    if (const auto [at, error] = std::from_chars(begin, end, real); error != std::errc{} || at != end)
      return Value(otherwise);
  } else {
    return Value(otherwise);
  }
  if (!(std::fabs(real) < 9.2e18)) return Value(otherwise);
  return Value(static_cast<std::int64_t>(real));
}

inline Value to_json(const Value& value, Arguments& in) {
  JsonStyle style;
  if (const auto ascii = in.find(0, "ensure_ascii")) style.ascii = ascii->truth();
  if (const auto indent = in.find(1, "indent"); indent && !indent->is_none()) {
    const std::int64_t width = in.integer(1, "indent", 0);
    if (width < 0 || width > 16) refuse(in.site().line, "an indentation of 0 to 16", std::to_string(width));
    style.indent = static_cast<int>(width);
  }
  std::string out;
  append_json(out, value, style, in.site().line);
  in.site().budget.charge(out.size(), in.site().line);
  return Value(std::move(out));
}

/// value | name(arguments). Throws Error for a filter that is not supported.
inline Value apply_filter(std::string_view name, const Value& value, Arguments& in) {
  const Site site = in.site();
  if (name == "default" || name == "d") {
    const Value otherwise = in.find(0, "default_value").value_or(Value(std::string()));
    const bool also_false = in.find(1, "boolean").value_or(Value(false)).truth();
    return value.is_undefined() || (also_false && !value.truth()) ? otherwise : value;
  }
  if (name == "length" || name == "count") return length_of(value, site.line);
  if (name == "tojson") return to_json(value, in);
  if (name == "join") {
    const auto between = in.find(0, "d");
    return joined(value, between ? to_text(*between, site.line) : "", site);
  }
  if (name == "list") return make_list(iterate(value, site), site.line);
  if (name == "items") {
    if (value.is_undefined()) return make_list({}, site.line);
    if (value.dict() == nullptr) refuse(site.line, "a dictionary", value.kind());
    return pairs_of(*value.dict(), site);
  }
  if (name == "first" || name == "last") {
    const std::vector<Value> all = iterate(value, site);
    if (all.empty()) return Value::Undefined{"the " + std::string(name) + " item of an empty sequence"};
    return name == "first" ? all.front() : all.back();
  }
  if (name == "int") return to_integer(value, in.integer(0, "default", 0), site);
  if (name == "safe") return value;                    // nothing is escaped, so nothing needs protection
  const std::string text = to_text(value, site.line);  // the rest works on text, whatever it is given
  site.budget.charge(text.size(), site.line);
  if (name == "string") return Value(text);
  if (name == "trim") return Value(stripped(text, in.find(0, "chars"), true, true, site));
  if (name == "upper" || name == "lower") return Value(in_case(text, name == "upper"));
  if (name == "capitalize") return Value(capitalized(text));
  if (name == "title") return Value(title_case(text));
  if (name == "replace") {
    const std::string from = in.text(0, "old"), to = in.text(1, "new");
    return Value(replaced(text, from, to, in.integer(2, "count", -1), site));
  }
  refuse_unsupported(site.line, "the filter '" + std::string(name) + "'");
}

// --- tests ---

/// value is name(arguments). Throws Error for a test that is not supported.
inline bool apply_test(std::string_view name, const Value& value, Arguments& in) {
  const Site site = in.site();
  const bool flag = value.get_if<bool>() != nullptr;
  if (name == "defined") return !value.is_undefined();
  if (name == "undefined") return value.is_undefined();
  if (name == "none") return value.is_none();
  if (name == "string") return value.string() != nullptr;
  if (name == "mapping") return value.dict() != nullptr;
  if (name == "number") return value.is_number();
  if (name == "integer") return value.get_if<std::int64_t>() != nullptr;
  if (name == "float") return value.get_if<double>() != nullptr;
  if (name == "boolean") return flag;
  if (name == "true" || name == "false") return flag && value.truth() == (name == "true");
  if (name == "iterable" || name == "sequence") {
    return value.string() != nullptr || value.list() != nullptr || value.dict() != nullptr || value.is_undefined();
  }
  if (name == "in") return contains(in.get(0, "seq"), value, site);
  if (name == "equalto" || name == "eq") return equal(value, in.get(0, ""), site);
  if (name == "ne") return !equal(value, in.get(0, ""), site);
  if (name == "odd" || name == "even" || name == "divisibleby") {
    const Value divisor = name == "divisibleby" ? in.get(0, "num") : Value(std::int64_t{2});
    return binary("%", value, divisor, site).truth() == (name == "odd");
  }
  refuse_unsupported(site.line, "the test '" + std::string(name) + "'");
}

// --- functions ---

/// range(stop), range(start, stop), range(start, stop, step).
inline Value range(Arguments& in) {
  const bool one = in.positional.size() < 2;
  if (in.positional.empty()) in.get(0, "");
  const std::int64_t start = one ? 0 : in.integer(0, "", 0), stop = in.integer(one ? 0 : 1, "", 0),
                     step = in.integer(2, "", 1);
  if (step == 0) refuse(in.site().line, "a step that is not zero", "zero");
  std::vector<Value> out;
  for (std::int64_t at = start; step > 0 ? at < stop : at > stop;) {
    in.site().budget.charge(Budget::element, in.site().line);
    out.emplace_back(at);
    if (__builtin_add_overflow(at, step, &at)) break;
  }
  return make_list(std::move(out), in.site().line);
}

/// The dictionary that dict(...) and namespace(...) build: of one dictionary, if given, and the named arguments.
inline Value::Dict dict_of_arguments(Arguments& in) {
  Value::Dict dict;
  if (const auto base = in.find(0, "")) {
    if (base->dict() == nullptr) refuse(in.site().line, "a dictionary", base->kind());
    dict = *base->dict();
  }
  for (const auto& [name, value] : in.named) {
    in.find(in.positional.size(), name);
    dict.set(name, value);
  }
  return *make_dict(std::move(dict), in.site().line).dict();
}

/// Calls a function of the environment.
inline Value call_function(std::string_view name, Arguments& in) {
  if (name == "range") return range(in);
  if (name == "dict") return dict_of_arguments(in);
  if (name == "namespace") return std::make_shared<Value::Namespace>(Value::Namespace{dict_of_arguments(in)});
  if (name == "raise_exception")
    refuse(in.site().line, "messages that the template accepts", to_text(in.get(0, "message"), in.site().line));
  refuse_unsupported(in.site().line, "the function '" + std::string(name) + "'");
}

/// The functions that exist, as `is defined` sees them; some of them are not supported yet and say so when called.
inline bool is_function(std::string_view name) {
  for (const std::string_view known : {"range", "dict", "namespace", "raise_exception", "strftime_now"}) {
    if (name == known) return true;
  }
  return false;
}

}  // namespace typeformer
