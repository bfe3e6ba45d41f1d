/// A JSON text as one value in memory, read as strictly everywhere.
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
inline constexpr int deepest_json = 64;

/// Parses a document. Throws Error, naming `operation` and `where`, for text that is not JSON, nests deeper than
/// `deepest_json`, or names a member of one object twice: which of the two counts would be a guess.
inline nlohmann::json parse_json(std::string_view text, std::string_view operation, std::string_view where) {
  const auto refuse = [&](std::string_view got) { throw Error(operation, where, "a JSON document", got); };
  // The parser takes a zero byte for the end of the text and would not see what follows.
  if (text.find('\0') != text.npos) refuse("a zero byte");
  std::vector<std::unordered_set<std::string>> open;  // the keys of the objects that have not ended
  const auto look = [&](int level, nlohmann::json::parse_event_t event, nlohmann::json& value) {
    using Event = nlohmann::json::parse_event_t;
    if (level > deepest_json) refuse("more than " + std::to_string(deepest_json) + " levels");
    if (event == Event::object_start) open.emplace_back();
    if (event == Event::object_end) open.pop_back();
    if (event == Event::key && !open.back().insert(value.get_ref<const std::string&>()).second)
      refuse("the key " + quote_name(value.get_ref<const std::string&>()) + " twice in one object");
    return true;
  };
  try {
    return nlohmann::json::parse(text.begin(), text.end(), look);
  } catch (const nlohmann::json::exception& problem) {
    throw Error(operation, where, "a JSON document", problem.what());
  }
}

}  // namespace typeformer
