/// A JSON text as one value in memory: every file that is read whole is read by this.
#pragma once
#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "typeformer/core/annotate.hpp"
#include "typeformer/core/error.hpp"
#include "typeformer/io/quote_name.hpp"

namespace typeformer::inline TYPEFORMER_ABI::io {

/// Objects and arrays nest at most this deep.
inline constexpr std::size_t deepest_json = 64;

namespace detail {

/// Looks through a JSON text for what a value in memory would not show: nesting too deep to be walked, and members
/// named twice. Tells it by refuse(got), which throws.
template <class Refuse>
class JsonCheck : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit JsonCheck(const Refuse& refuse) : refuse_(refuse) {}

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool start_object(std::size_t) override { return begin(); }
  bool start_array(std::size_t) override { return begin(); }
  bool end_object() override { return end(); }
  bool end_array() override { return end(); }
  bool key(string_t& value) override {
    if (!open_.back().insert(value).second) refuse_("the key " + quote_name(value) + " twice in one object");
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception& problem) override {
    refuse_(problem.what());
    return false;
  }

 private:
  bool begin() {
    if (open_.size() == deepest_json) refuse_("more than " + std::to_string(deepest_json) + " levels");
    open_.emplace_back();
    return true;
  }
  bool end() {
    open_.pop_back();
    return true;
  }
  const Refuse& refuse_;
  std::vector<std::unordered_set<std::string>> open_;  // the keys of what has not ended; of arrays none
};

}  // namespace detail

/// Parses a document. Throws Error, naming `operation` and `where`, for text that is not JSON, nests deeper than
/// `deepest_json`, or names a member of one object twice: which of the two counts would be a guess. Linear in the text.
inline nlohmann::json parse_json(std::string_view text, std::string_view operation, std::string_view where) {
  const auto refuse = [&](std::string_view got) { throw Error(operation, where, "a JSON document", got); };
  // The parser takes a zero byte for the end of the text and would not see what follows.
  if (text.find('\0') != text.npos) refuse("a zero byte");
  detail::JsonCheck check(refuse);
  nlohmann::json::sax_parse(text.begin(), text.end(), &check);
  return nlohmann::json::parse(text.begin(), text.end());
}

}  // namespace typeformer
