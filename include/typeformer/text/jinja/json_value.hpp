/// JSON as values of a chat template.
#pragma once
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "typeformer/core/annotate.hpp"
#include "typeformer/core/error.hpp"
#include "typeformer/io/json_events.hpp"
#include "typeformer/io/quote_name.hpp"
#include "typeformer/text/jinja/value.hpp"

namespace typeformer::inline TYPEFORMER_ABI::text::jinja {

/// Builds one value from the events of a JSON text; the members of objects keep their order.
class JsonValueReader : public io::JsonEvents {
 public:
  /// Messages name `argument` of ChatTemplate::render.
  explicit JsonValueReader(const char* argument) : JsonEvents("ChatTemplate::render", argument) {}

  Value value(std::string_view text) {
    read(std::as_bytes(std::span(text)));
    return std::move(whole_);
  }

  bool null() override { return add(Value()); }
  bool boolean(bool value) override { return add(Value(value)); }
  bool number_integer(number_integer_t value) override { return add(Value(std::int64_t{value})); }
  bool number_unsigned(number_unsigned_t value) override {
    if (value > std::uint64_t{std::numeric_limits<std::int64_t>::max()})
      refuse("JSON", "integers of 64 bits", "a larger one");
    return add(Value(static_cast<std::int64_t>(value)));
  }
  bool number_float(number_float_t value, const string_t&) override { return add(Value(double{value})); }
  bool string(string_t& value) override { return add(Value(std::move(value))); }
  bool start_object(std::size_t) override { return open(true); }
  bool end_object() override {
    Open done = std::move(open_.back());
    open_.pop_back();
    return add(Value(std::move(done.dict)));
  }
  bool start_array(std::size_t) override { return open(false); }
  bool end_array() override {
    Open done = std::move(open_.back());
    open_.pop_back();
    return add(Value(std::move(done.list)));
  }
  bool key(string_t& value) override {
    if (open_.back().dict.find(value) != nullptr) refuse("JSON", "every key once in an object", io::quote_name(value));
    open_.back().key = std::move(value);
    return true;
  }

 private:
  /// An object or array whose end has not come yet.
  struct Open {
    bool is_object;
    std::string key{};
    Value::Dict dict{};
    Value::List list{};
  };

  bool open(bool is_object) {
    if (open_.size() >= deepest_value) refuse("JSON", "at most " + std::to_string(deepest_value) + " levels", "more");
    open_.push_back({is_object});
    return true;
  }
  bool add(Value value) {
    if (open_.empty())
      whole_ = std::move(value);
    else if (open_.back().is_object)
      open_.back().dict.set(std::move(open_.back().key), std::move(value));
    else
      open_.back().list.items.push_back(std::move(value));
    return true;
  }
  bool unexpected(const std::string& got) override { refuse("JSON", "JSON's own kinds", got); }

  std::vector<Open> open_;
  Value whole_;
};

}  // namespace typeformer
