/// The values of a chat template: Python's, as far as templates meet them.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "typeformer/core/annotate.hpp"
#include "typeformer/core/error.hpp"

namespace typeformer::inline TYPEFORMER_ABI::text::jinja {

/// Says where and why a template cannot go on.
[[noreturn]] inline void refuse(int line, std::string_view expected, std::string_view got) {
  throw Error("ChatTemplate", "line " + std::to_string(line), expected, got);
}
/// Says that a construct of Jinja is not part of the interpreter.
[[noreturn]] inline void refuse_unsupported(int line, std::string_view construct) {
  refuse(line, "constructs that chat templates use", std::string(construct) + ", which is not supported");
}

/// What a rendering may still do: one for a step and for a character made or looked at, `element` for a list element.
/// Neither time nor memory grows without bound, whatever the template.
class Budget {
 public:
  /// What a list element or a turn of a loop costs: it takes that much more memory and time than a character.
  static constexpr std::uint64_t element = 16;

  explicit Budget(std::uint64_t limit) : left_(limit), limit_(limit) {}
  void charge(std::uint64_t amount, int line) {
    if (amount > left_) refuse(line, "work within the limit of " + std::to_string(limit_) + " steps", "more");
    left_ -= amount;
  }

 private:
  std::uint64_t left_, limit_;
};

/// One value. Copies share strings, lists and dictionaries, which never change; a namespace is shared and may change.
class Value {
 public:
  /// A name or member that does not exist; `what` says which.
  struct Undefined {
    std::string what;
  };
  struct None {};
  struct List;
  struct Dict;
  struct Namespace;
  struct Loop;
  /// A function of the environment by its name.
  struct Function {
    std::string name;
  };

  Value() : data_(None{}) {}
  Value(Undefined value) : data_(std::move(value)) {}
  explicit Value(bool value) : data_(value) {}
  explicit Value(std::int64_t value) : data_(value) {}
  explicit Value(double value) : data_(value) {}
  explicit Value(std::string value) : data_(std::make_shared<const std::string>(std::move(value))) {}
  Value(Function value) : data_(std::move(value)) {}
  Value(std::shared_ptr<Namespace> value) : data_(std::move(value)) {}
  Value(std::shared_ptr<const Loop> value) : data_(std::move(value)) {}
  Value(List value);
  Value(Dict value);

  /// The value as T (Undefined, None, bool, std::int64_t, double, Function), or null when it is of another kind.
  template <class T>
  const T* get_if() const {
    return std::get_if<T>(&data_);
  }
  const std::string* string() const { return shared<const std::string>(); }
  const List* list() const { return shared<const List>(); }
  const Dict* dict() const { return shared<const Dict>(); }
  Namespace* name_space() const { return shared<Namespace>(); }
  const Loop* loop() const { return shared<const Loop>(); }

  bool is_undefined() const { return get_if<Undefined>() != nullptr; }
  bool is_none() const { return get_if<None>() != nullptr; }
  bool is_number() const { return data_.index() >= 2 && data_.index() <= 4; }  // bool is a number in Python

  /// bool and int64 as int64; nothing for the rest.
  const std::int64_t* integer(std::int64_t& storage) const {
    if (const bool* flag = get_if<bool>()) storage = *flag ? 1 : 0;
    if (const auto* number = get_if<std::int64_t>()) storage = *number;
    return data_.index() == 2 || data_.index() == 3 ? &storage : nullptr;
  }
  /// The number as double; only for is_number().
  double real() const {
    if (const double* number = get_if<double>()) return *number;
    std::int64_t storage = 0;
    integer(storage);
    return static_cast<double>(storage);
  }

  /// Python's truth: false for undefined, None, False, zero and what is empty.
  bool truth() const;
  /// How many lists and dictionaries contain each other from here on.
  std::size_t depth() const;
  /// Characters and elements in it.
  std::uint64_t weight() const;
  /// The kind's name for messages.
  std::string_view kind() const;

 private:
  template <class T>
  T* shared() const {
    const auto* pointer = std::get_if<std::shared_ptr<T>>(&data_);
    return pointer == nullptr ? nullptr : pointer->get();
  }
  std::variant<Undefined, None, bool, std::int64_t, double, std::shared_ptr<const std::string>,
               std::shared_ptr<const List>, std::shared_ptr<const Dict>, std::shared_ptr<Namespace>,
               std::shared_ptr<const Loop>, Function>
      data_;
};

/// Lists and dictionaries nest at most this deep, so that walking them is safe.
inline constexpr std::size_t deepest_value = 200;

/// A list, or a tuple, which only prints differently.
struct Value::List {
  std::vector<Value> items;
  bool is_tuple = false;
  std::size_t depth = 1;
};

/// A dictionary in insertion order. Keys are strings.
struct Value::Dict {
  std::vector<std::pair<std::string, Value>> items;
  std::size_t depth = 1;

  const Value* find(std::string_view key) const {
    const auto found = std::find_if(items.begin(), items.end(), [&](const auto& item) { return item.first == key; });
    return found == items.end() ? nullptr : &found->second;
  }
  void set(std::string key, Value value) {
    const auto found = std::find_if(items.begin(), items.end(), [&](const auto& item) { return item.first == key; });
    if (found == items.end()) {
      items.emplace_back(std::move(key), std::move(value));
    } else {
      found->second = std::move(value);
    }
  }
};

/// The one thing that a template can change in place. Members are never namespaces: nothing refers to itself.
struct Value::Namespace {
  Dict members;
};

/// `loop` inside a for: the items and where the loop stands.
struct Value::Loop {
  std::shared_ptr<const std::vector<Value>> items;
  std::size_t index0 = 0;
  std::size_t depth0 = 0;
};

inline Value::Value(List value) {
  for (const Value& item : value.items) value.depth = std::max(value.depth, 1 + item.depth());
  data_ = std::make_shared<const List>(std::move(value));
}
inline Value::Value(Dict value) {
  for (const auto& item : value.items) value.depth = std::max(value.depth, 1 + item.second.depth());
  data_ = std::make_shared<const Dict>(std::move(value));
}

inline bool Value::truth() const {
  if (is_undefined() || is_none()) return false;
  if (is_number()) return real() != 0;
  if (const std::string* text = string()) return !text->empty();
  if (const List* items = list()) return !items->items.empty();
  if (const Dict* items = dict()) return !items->items.empty();
  return true;
}

inline std::size_t Value::depth() const {
  const List* items = list();
  const Dict* pairs = dict();
  return items != nullptr ? items->depth : pairs != nullptr ? pairs->depth : 0;
}

inline std::uint64_t Value::weight() const {
  std::uint64_t sum = 1;
  if (const std::string* text = string()) sum += text->size();
  if (const List* items = list()) {
    for (const Value& item : items->items) sum += item.weight();
  }
  if (const Dict* pairs = dict()) {
    for (const auto& [key, item] : pairs->items) sum += key.size() + item.weight();
  }
  return sum;
}

inline std::string_view Value::kind() const {
  constexpr std::string_view names[] = {"undefined",   "none",     "a boolean", "an integer",
                                        "a number",    "a string", "a list",    "a dictionary",
                                        "a namespace", "a loop",   "a function"};
  return names[data_.index()];
}

/// The items as a list value. Throws Error when values would nest too deep, or hold a namespace, loop or function.
inline Value make_list(std::vector<Value> items, int line, bool is_tuple = false) {
  for (const Value& item : items) {
    if (item.name_space() != nullptr || item.loop() != nullptr || item.get_if<Value::Function>() != nullptr) {
      refuse(line, "plain values in a list or dictionary", item.kind());
    }
    if (item.depth() >= deepest_value)
      refuse(line, "values nested at most " + std::to_string(deepest_value) + " deep", "more");
  }
  return Value::List{std::move(items), is_tuple};
}

/// The same for a dictionary.
inline Value make_dict(Value::Dict dict, int line) {
  std::vector<Value> values;
  for (const auto& item : dict.items) values.push_back(item.second);
  make_list(std::move(values), line);
  return dict;
}

}  // namespace typeformer
