/// A JSON value together with the way that leads to it, so that every complaint names its field.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "typeformer/core/annotate.hpp"
#include "typeformer/core/error.hpp"
#include "typeformer/io/quote_name.hpp"

namespace typeformer::inline TYPEFORMER_ABI::text {

/// A view of one value. Every access throws Error, naming the field, when the value is of another type.
class JsonField {
 public:
  /// `value` must outlive this object.
  JsonField(const nlohmann::json& value, std::string where) : value_(&value), where_(std::move(where)) {}

  const std::string& where() const { return where_; }
  const nlohmann::json& value() const { return *value_; }
  bool is_null() const { return value_->is_null(); }

  [[noreturn]] void refuse(std::string_view expected, std::string_view got) const {
    throw Error("Tokenizer", where_, expected, got);
  }
  [[noreturn]] void refuse(std::string_view expected) const { refuse(expected, described()); }

  /// The member of that name. Throws Error when there is none.
  JsonField at(std::string_view key) const {
    if (auto found = find(key)) return *found;
    refuse("a field " + io::quote_name(key), "none");
  }
  /// The member of that name, or nothing when it is missing or null.
  std::optional<JsonField> find(std::string_view key) const {
    if (!value_->is_object()) refuse("an object");
    const auto found = value_->find(std::string(key));
    if (found == value_->end() || found->is_null()) return std::nullopt;
    return JsonField(*found, where_ + (where_.ends_with(": ") ? "" : ".") + std::string(key));
  }
  bool flag(std::string_view key, bool otherwise) const {
    const auto found = find(key);
    return found ? found->boolean() : otherwise;
  }
  std::string string_or(std::string_view key, std::string_view otherwise) const {
    const auto found = find(key);
    return found ? found->string() : std::string(otherwise);
  }

  const std::string& string() const {
    if (!value_->is_string()) refuse("a string");
    return value_->get_ref<const std::string&>();
  }
  bool boolean() const {
    if (!value_->is_boolean()) refuse("true or false");
    return value_->get<bool>();
  }
  double number() const {
    if (!value_->is_number()) refuse("a number");
    return value_->get<double>();
  }
  /// A token id.
  std::int32_t id() const {
    constexpr std::uint64_t most = std::numeric_limits<std::int32_t>::max() - 1;
    if (!value_->is_number_unsigned() || value_->get<std::uint64_t>() > most) refuse("a token id");
    return static_cast<std::int32_t>(value_->get<std::uint64_t>());
  }

  /// The elements of an array.
  std::vector<JsonField> elements() const {
    if (!value_->is_array()) refuse("an array");
    std::vector<JsonField> out;
    out.reserve(value_->size());
    for (const nlohmann::json& element : *value_) {
      out.emplace_back(element, where_ + "[" + std::to_string(out.size()) + "]");
    }
    return out;
  }

  /// Throws Error when the object has a member that is not listed: a field that is not understood is not skipped.
  void allow_only(std::initializer_list<std::string_view> known) const {
    if (!value_->is_object()) refuse("an object");
    for (const auto& [key, unused] : value_->items()) {
      if (std::find(known.begin(), known.end(), key) == known.end())
        refuse("no field that is not supported", io::quote_name(key));
    }
  }

 private:
  std::string described() const {
    if (value_->is_string()) return io::quote_name(value_->get_ref<const std::string&>());
    if (value_->is_boolean()) return value_->get<bool>() ? "true" : "false";
    if (value_->is_number_unsigned()) return std::to_string(value_->get<std::uint64_t>());
    if (value_->is_number_integer()) return std::to_string(value_->get<std::int64_t>());
    if (value_->is_number()) return std::to_string(value_->get<double>());
    return value_->type_name();
  }
  const nlohmann::json* value_;
  std::string where_;
};

}  // namespace typeformer
