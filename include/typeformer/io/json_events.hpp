/// JSON as a stream of events, for files that are checked while they are read instead of being built up in memory
/// first.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "typeformer/core/annotate.hpp"
#include "typeformer/core/error.hpp"
#include "typeformer/io/quote_name.hpp"

namespace typeformer::inline TYPEFORMER_ABI::io {

/// Base of the readers of one kind of JSON file: refuses every event that a derived reader does not expect.
/// Memory stays in proportion to the text whatever it says: nesting is followed by derived readers, not stored.
class JsonEvents : public nlohmann::json_sax<nlohmann::json> {
 public:
  /// Messages name `operation` and `path`.
  JsonEvents(std::string operation, const std::filesystem::path& path)
      : operation_(std::move(operation)), path_(quote_name(path.native())) {}

  /// Sends the events of `text`, which must be one JSON value between white space. Throws Error for anything else.
  void read(std::span<const std::byte> text) {
    const auto* const begin = reinterpret_cast<const char*>(text.data());
    // The parser takes a zero byte for the end of the text and would not see what follows.
    if (!text.empty() && std::memchr(begin, 0, text.size()) != nullptr) refuse("JSON", "text", "a zero byte");
    nlohmann::json::sax_parse(begin, begin + text.size(), this);
  }

  bool null() override { return unexpected("null"); }
  bool boolean(bool value) override { return unexpected(value ? "true" : "false"); }
  bool number_integer(number_integer_t value) override { return unexpected(std::to_string(value)); }
  bool number_unsigned(number_unsigned_t value) override { return unexpected(std::to_string(value)); }
  bool number_float(number_float_t, const string_t& digits) override { return unexpected(quote_name(digits)); }
  bool string(string_t& value) override { return unexpected("the string " + quote_name(value)); }
  bool binary(binary_t&) override { return unexpected("binary data"); }
  bool start_object(std::size_t) override { return unexpected("an object"); }
  bool end_object() override { return unexpected("the end of the object"); }
  bool start_array(std::size_t) override { return unexpected("an array"); }
  bool end_array() override { return unexpected("the end of the array"); }
  bool key(string_t& value) override { return unexpected("the key " + quote_name(value)); }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception& error) override {
    refuse("JSON at byte " + std::to_string(position), "valid JSON", quote_name(error.what()));
  }

 protected:
  [[noreturn]] void refuse(std::string_view field, std::string_view expected, std::string_view got) const {
    throw Error(operation_, std::string(path_).append(": ").append(field), expected, got);
  }
  /// Called with what was found where the reader expected something else. Derived readers say what they expected.
  virtual bool unexpected(const std::string& got) = 0;

 private:
  std::string operation_, path_;
};

}  // namespace typeformer
