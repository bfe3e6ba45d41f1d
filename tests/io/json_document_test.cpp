// test: sanitize
// JSON documents: what they refuse, and that hostile ones take no more time than their length.
#include "typeformer/io/json_document.hpp"

#include <doctest/doctest.h>

#include <string>

namespace {

using typeformer::io::parse_json;

std::string refusal(const std::string& text) {
  try {
    parse_json(text, "test", "text");
  } catch (const typeformer::Error& error) {
    return error.got();
  }
  return "";
}
bool contains(const std::string& text, std::string_view part) {
  CAPTURE(text);
  return text.find(part) != text.npos;
}

}  // namespace

TEST_CASE("many objects in one are read in time linear in the text") {
  std::string many = "{";
  for (int i = 0; i < 200000; ++i) many += "\"" + std::to_string(i) + "\":{},";
  many.back() = '}';
  CHECK(parse_json(many, "test", "text").size() == 200000);
}

TEST_CASE("what is no document is refused with its place") {
  const auto nested = [](std::size_t levels) { return std::string(levels, '[') + std::string(levels, ']'); };
  CHECK(refusal(nested(64)) == "");
  CHECK(contains(refusal(nested(65)), "more than 64 levels"));
  CHECK(contains(refusal(nested(1000000)), "more than 64 levels"));
  CHECK(contains(refusal("{\"a\": 1,}"), "column 9"));
  CHECK(contains(refusal("{\"a\": 1} x"), "column 10"));
  CHECK(contains(refusal(""), "column 1"));
  CHECK(contains(refusal(std::string("{}\0", 3)), "a zero byte"));
  CHECK(contains(refusal("{\"a\": {\"b\": 1, \"b\": 2}}"), "the key 'b' twice in one object"));
  CHECK(refusal("{\"a\": [{\"b\": 1}, {\"b\": 2}], \"b\": 3}") == "");
  CHECK(contains(refusal("{\"a\xff\": 1}"), "invalid"));
}
