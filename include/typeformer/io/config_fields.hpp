/// A checkpoint's description of itself, read key by key: every key is read, known to change nothing, or refused.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "typeformer/core/error.hpp"
#include "typeformer/io/quote_name.hpp"

namespace typeformer::inline TYPEFORMER_ABI::io {

/// The keys of a config.json. A key whose value is null counts as absent.
class ConfigFields {
 public:
  /// `where`: what errors call the object, "config.json" or "config.json: rope_parameters".
  ConfigFields(const nlohmann::json& object, std::string where) : object_(object), where_(std::move(where)) {
    if (!object_.is_object()) refuse("", "an object", object_);
  }

  bool has(std::string_view key) const {
    const auto at = object_.find(key);
    return at != object_.end() && !at->is_null();
  }
  /// The value of a key that must be there.
  int integer(std::string_view key) { return number_of<int>(key, value(key)); }
  float real(std::string_view key) { return number_of<float>(key, value(key)); }
  bool flag(std::string_view key) {
    const auto& v = value(key);
    if (!v.is_boolean()) refuse(key, "true or false", v);
    return v.get<bool>();
  }
  std::string text(std::string_view key) {
    const auto& v = value(key);
    if (!v.is_string()) refuse(key, "a string", v);
    return v.get<std::string>();
  }
  const nlohmann::json& value(std::string_view key) {
    read_.insert(std::string(key));
    if (!has(key)) throw Error("load", where_ + ": " + std::string(key), "a value", "none");
    return object_.find(key).value();
  }
  int integer_or(std::string_view key, int otherwise) { return has(key) ? integer(key) : absent(key, otherwise); }
  float real_or(std::string_view key, float otherwise) { return has(key) ? real(key) : absent(key, otherwise); }
  bool flag_or(std::string_view key, bool otherwise) { return has(key) ? flag(key) : absent(key, otherwise); }
  std::string text_or(std::string_view key, const std::string& otherwise) {
    return has(key) ? text(key) : absent(key, otherwise);
  }
  ConfigFields object(std::string_view key) { return {value(key), where_ + ": " + std::string(key)}; }

  /// The value must be `wanted`, or absent.
  void only(std::string_view key, const nlohmann::json& wanted, std::string_view why) {
    read_.insert(std::string(key));
    if (has(key) && object_.find(key).value() != wanted)
      refuse(key, wanted.dump() + " (" + std::string(why) + ")", object_.find(key).value());
  }
  /// Every key that was not read must be one of `harmless`: those change nothing of the network. Throws Error for
  /// another.
  void finish(const std::set<std::string, std::less<>>& harmless) {
    for (const auto& [key, v] : object_.items()) {
      if (read_.count(key) || v.is_null()) continue;
      if (!harmless.count(key)) refuse(key, "a field that the reader of this architecture understands", v);
      ignored_.push_back(key);
    }
  }
  /// The keys that were read, of those that the file has.
  std::vector<std::string> read() const {
    std::vector<std::string> keys;
    for (const std::string& key : read_)
      if (has(key)) keys.push_back(key);
    return keys;
  }
  const std::vector<std::string>& ignored() const { return ignored_; }
  [[noreturn]] void refuse(std::string_view key, const std::string& expected, const nlohmann::json& got) const {
    std::string text = got.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
    if (text.size() > 120) text = text.substr(0, 120) + "...";
    throw Error("load", where_ + (key.empty() ? "" : ": " + quote_name(key)), expected, text);
  }

 private:
  template <class T>
  T absent(std::string_view key, T otherwise) {
    read_.insert(std::string(key));
    return otherwise;
  }
  template <class T>
  T number_of(std::string_view key, const nlohmann::json& v) const {
    if constexpr (std::is_same_v<T, int>) {
      if (!v.is_number_integer()) refuse(key, "an integer", v);
      const auto number =
          v.is_number_unsigned() && v.get<std::uint64_t>() > 0x7fffffffu ? std::int64_t{-1} : v.get<std::int64_t>();
      if (number < 0 || number > 0x7fffffff) refuse(key, "an integer from 0 to 2147483647", v);
      return static_cast<int>(number);
    } else {
      const double number = v.is_number() ? v.get<double>() : 0.;
      if (!v.is_number() || std::fabs(number) > double{std::numeric_limits<float>::max()})
        refuse(key, "a number that a float holds", v);
      return static_cast<float>(number);
    }
  }
  const nlohmann::json& object_;
  std::string where_;
  std::set<std::string, std::less<>> read_;
  std::vector<std::string> ignored_;
};

}  // namespace typeformer
