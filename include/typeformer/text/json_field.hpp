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

#include <nlohmann/json.hpp>

#include "typeformer/core/annotate.hpp"
#include "typeformer/core/error.hpp"
#include "typeformer/io/quote_name.hpp"

namespace typeformer::inline TYPEFORMER_ABI::text {

/// Parses a document. Throws Error for text that is not JSON. `where` names it in errors.
inline nlohmann::json parse_json(std::string_view text, std::string_view where) {
  try {
    return nlohmann::json::parse(text.begin(), text.end());
  } catch (const nlohmann::json::exception& problem) {
    throw Error("Tokenizer", where, "a JSON document", problem.what());
  }
}

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
  /// A token id.
  std::int32_t id() const {
    constexpr std::uint64_t most = std::numeric_limits<std::int32_t>::max() - 1;
    if (!value_->is_number_unsigned() || value_->get<std::uint64_t>() > most) refuse("a token id");
    return static_cast<std::int32_t>(value_->get<std::uint64_t>());
  }

  /// Calls visit(JsonField) for every element of an array.
  template <class Visit>
  void each(const Visit& visit) const {
    if (!value_->is_array()) refuse("an array");
    for (std::size_t i = 0; i < value_->size(); ++i)
      visit(JsonField((*value_)[i], where_ + "[" + std::to_string(i) + "]"));
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
    if (value_->is_boolean() || value_->is_number()) return value_->dump();
    return value_->type_name();
  }
  const nlohmann::json* value_;
  std::string where_;
};

}  // namespace typeformer
