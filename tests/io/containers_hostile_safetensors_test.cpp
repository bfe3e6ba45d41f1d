// test: sanitize
// test: timeout=600
// safetensors files that lie: every value exchanged, every truncation, bytes changed at random, and what the Errors
// say.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "io/container_files.hpp"
#include "io/container_opener.hpp"

namespace {

using container_files::contains;
using container_files::damaged;
using container_files::extremes;
using container_files::Field;
using container_files::Opener;
using container_files::raw;
using container_files::safetensors;

constexpr std::string_view small_header =
    R"({"__metadata__":{"format":"pt","by":"x"},"a":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},)"
    R"("b":{"dtype":"BF16","shape":[4],"data_offsets":[24,32]},"s":{"dtype":"F32","shape":[],"data_offsets":[32,36]},)"
    R"("e":{"dtype":"F16","shape":[0,5],"data_offsets":[36,36]},)"
    R"("i":{"dtype":"I64","shape":[1],"data_offsets":[36,44]}})";

std::string small_safetensors() { return safetensors(small_header, std::string(44, '\1')); }

// The header with one value exchanged for another JSON text.
std::string exchanged(const nlohmann::ordered_json& header, const nlohmann::ordered_json::json_pointer& at,
                      const std::string& text) {
  nlohmann::ordered_json copy = header;
  copy[at] = "@@@";
  std::string whole = copy.dump();
  const std::string mark = "\"@@@\"";
  return whole.replace(whole.find(mark), mark.size(), text);
}

// The test's own opinion: the named tensor still has whole numbers for a shape, a known dtype, and their product as
// size.
bool has_size_of_its_range(const std::string& header, const std::string& name) {
  const auto whole = nlohmann::json::parse(header, nullptr, false);
  if (!whole.is_object() || !whole.contains(name) || !whole[name].is_object()) return false;
  const auto& tensor = whole[name];
  const auto is_whole_number = [](const nlohmann::json& value) { return value.is_number_unsigned(); };
  if (!tensor.contains("dtype") || !tensor.contains("shape") || !tensor.contains("data_offsets")) return false;
  for (const char* const list : {"shape", "data_offsets"})
    if (!tensor[list].is_array() || !std::all_of(tensor[list].begin(), tensor[list].end(), is_whole_number))
      return false;
  const nlohmann::json sizes{{"F32", 4}, {"BF16", 2}, {"F16", 2}, {"I64", 8}};
  if (!tensor["dtype"].is_string() || !sizes.contains(tensor["dtype"])) return false;
  auto size = sizes[tensor["dtype"]].get<long double>();
  for (const auto& length : tensor["shape"]) size *= length.get<long double>();
  const nlohmann::json old = nlohmann::json::parse(small_header)[name]["data_offsets"];
  return tensor["data_offsets"] == old && size == old[1].get<long double>() - old[0].get<long double>();
}

}  // namespace

TEST_CASE("safetensors: every truncation and every header length is refused") {
  Opener opener;
  const std::string whole = small_safetensors();
  CHECK(opener.tensors(whole) == "");
  for (std::size_t length = 0; length < whole.size(); ++length) {
    CAPTURE(length);
    CHECK(opener.tensors(whole.substr(0, length)) != "");
  }
  CHECK(contains(opener.tensors(whole + 'x'), "data: expected 44 bytes, the end of the last tensor, got 45"));
  const Field length{"length", 0, 8};
  for (std::uint64_t value = 0; value < 2 * whole.size(); ++value) {
    CAPTURE(value);
    if (value != small_header.size()) CHECK(opener.tensors(length.with(whole, value)) != "");
  }
  for (const std::uint64_t value : extremes) CHECK(opener.tensors(length.with(whole, value)) != "");
}

TEST_CASE("safetensors: every value of the header exchanged for values of every type") {
  Opener opener;
  const auto header = nlohmann::ordered_json::parse(small_header);
  const std::string data(44, '\1');
  const std::vector<std::string> texts{"null",
                                       "true",
                                       "-1",
                                       "0",
                                       "1",
                                       "2.0",
                                       "1e300",
                                       "-0",
                                       "36",
                                       "4294967296",
                                       "1152921504606846976",
                                       "9223372036854775808",
                                       "18446744073709551615",
                                       "18446744073709551616",
                                       "\"\"",
                                       "\"F32\"",
                                       "\"x\"",
                                       "[]",
                                       "[0]",
                                       "[1,2,3]",
                                       "{}",
                                       "{\"dtype\":\"F32\"}",
                                       "[[2,3]]",
                                       "[2,-3]",
                                       "[2,3,null]",
                                       "[4611686018427387904,4]",
                                       "[4611686018427387904,4,0]",
                                       "[24,0]",
                                       "\xff",
                                       ""};
  int checked = 0;
  const auto flat = header.flatten();
  for (const auto& [path, value] : flat.items()) {
    const nlohmann::ordered_json::json_pointer at(path);
    std::vector<nlohmann::ordered_json::json_pointer> places{at};
    for (auto place = at; !place.parent_pointer().empty();) places.push_back(place = place.parent_pointer());
    for (const auto& place : places) {
      for (const std::string& text : texts) {
        const auto old = header[place].dump();
        if (text == old) continue;
        CAPTURE(place.to_string());
        CAPTURE(text);
        const std::string bytes = exchanged(header, place, text), result = opener.tensors(safetensors(bytes, data));
        const bool is_text = place.to_string().find("__metadata__") != std::string::npos &&
                             (text.starts_with('"') || text.starts_with('{'));
        const bool is_consistent = is_text || has_size_of_its_range(bytes, place.to_string().substr(1, 1));
        if (!is_consistent) CHECK(result != "");
        ++checked;
      }
    }
  }
  CHECK(checked > 1000);
}

TEST_CASE("safetensors: every key missing, doubled, unknown") {
  Opener opener;
  const auto header = nlohmann::ordered_json::parse(small_header);
  const std::string data(44, '\1');
  for (const std::string tensor : {"a", "b", "s", "i"}) {
    auto without = header;
    without.erase(tensor);
    CHECK(opener.tensors(safetensors(without.dump(), data)) != "");
    for (const std::string field : {"dtype", "shape", "data_offsets"}) {
      auto copy = header;
      copy[tensor].erase(field);
      CHECK(contains(opener.tensors(safetensors(copy.dump(), data)), field + " of tensor '" + tensor + "': expected"));
      std::string doubled = header.dump();
      const std::string entry = "\"" + field + "\":" + header[tensor][field].dump();
      doubled.insert(doubled.find(entry, doubled.find("\"" + tensor + "\":{")), entry + ",");
      CHECK(contains(opener.tensors(safetensors(doubled, data)),
                     field + " of tensor '" + tensor + "': expected one, got several"));
    }
    auto more = header;
    more[tensor]["scale"] = 2;
    CHECK(contains(opener.tensors(safetensors(more.dump(), data)),
                   "expected dtype, shape and data_offsets only, got 'scale'"));
  }
}

TEST_CASE("safetensors: what is wrong is named") {
  Opener opener;
  const auto refused = [&](const std::string& bytes, std::string_view part) {
    CHECK(contains(opener.tensors(bytes), part));
  };
  const auto one = [](std::string_view shape, std::string_view offsets, std::string_view dtype = "F32",
                      std::size_t data = 8) {
    return safetensors(std::string(R"({"x":{"dtype":")")
                           .append(dtype)
                           .append(R"(","shape":)")
                           .append(shape)
                           .append(R"(,"data_offsets":)")
                           .append(offsets)
                           .append("}}"),
                       std::string(data, '\0'));
  };
  const auto two = [](std::string_view first, std::string_view second, std::size_t data) {
    const std::string begin = R"({"dtype":"F32","shape":[2],"data_offsets":)";
    return safetensors(std::string(R"({"x":)")
                           .append(begin)
                           .append(first)
                           .append(R"(},"y":)")
                           .append(begin)
                           .append(second)
                           .append("}}"),
                       std::string(data, '\0'));
  };
  CHECK(opener.tensors(one("[2]", "[0,8]")) == "");
  CHECK(opener.tensors(safetensors("{}")) == "");
  CHECK(opener.tensors(safetensors("{}  \n")) == "");
  CHECK(opener.tensors(two("[8,16]", "[0,8]", 16)) == "");
  refused("", "header length: expected 8 bytes, got 0");
  refused(raw(~std::uint64_t{0}) + "{}", "header length: expected at most 100000000, got 18446744073709551615");
  refused(raw(std::uint64_t{100'000'001}) + "{}", "header length: expected at most 100000000");
  refused(raw(std::uint64_t{3}) + "{}", "header length: expected within the 2 bytes that follow, got 3");
  refused(safetensors(""), "header: expected an opening brace first, got nothing");
  refused(safetensors(" {}"), "header: expected an opening brace first, got another byte");
  refused(safetensors("[]"), "header: expected an opening brace first");
  refused(safetensors("\xef\xbb\xbf{}"), "header: expected an opening brace first");
  refused(safetensors("{}x"), "expected valid JSON");
  refused(safetensors(std::string_view("{}\0{", 4)), "expected text, got a zero byte");
  refused(safetensors("{\"\xff\":1}"), "expected valid JSON");
  refused(safetensors("{" + std::string(50000, '[')), "expected valid JSON");
  refused(safetensors("{\"x\":" + std::string(50000, '[')), "tensor 'x': expected an object, got an array");
  refused(safetensors("{\"x\":null}"), "tensor 'x': expected an object, got null");
  refused(safetensors(R"({"__metadata__":{"x":1}})"), "__metadata__ 'x': expected a string, got 1");
  refused(safetensors(R"({"__metadata__":{"x":{}}})"), "__metadata__ 'x': expected a string, got an object");
  refused(safetensors(R"({"__metadata__":null})"), "__metadata__: expected an object, got null");
  refused(safetensors(R"({"__metadata__":{"x":"1","x":"2"}})"), "__metadata__ 'x': expected one entry, got several");
  refused(safetensors(R"({"__metadata__":{},"__metadata__":{}})"), "__metadata__: expected one entry, got several");
  refused(one("[2]", "[0,8]", "F33"), "dtype of tensor 'x': expected a dtype of the safetensors format, got 'F33'");
  refused(one("[2]", "[0,8]", "f32"), "got 'f32'");
  refused(one("[2]", "[8,0]"), "data_offsets of tensor 'x': expected a range within 8 bytes of data, got [8, 0]");
  refused(one("[2]", "[0,16]"), "expected a range within 8 bytes of data, got [0, 16]");
  refused(one("[2]", "[-8,0]"), "data_offsets of tensor 'x': expected integers from 0 to 2^64 - 1, got -8");
  refused(one("[2]", "[0.0,8]"), "expected integers from 0 to 2^64 - 1, got '0.0'");
  refused(one("[2]", "[0]"), "data_offsets of tensor 'x': expected two numbers, got 1");
  refused(one("[2]", "[0,8,8]"), "data_offsets of tensor 'x': expected two numbers, got more");
  refused(one("[3]", "[0,8]"), "expected 12 bytes for its shape and dtype, got [0, 8]");
  refused(one("[4611686018427387904,4]", "[0,8]"), "shape of tensor 'x': expected a product within 64 bits, got more");
  refused(one("[4611686018427387904]", "[0,8]"), "shape of tensor 'x': expected a size within 64 bits, got more");
  refused(one("[3]", "[0,2]", "F4", 2), "shape of tensor 'x': expected whole bytes of F4, got 3 numbers");
  CHECK(opener.tensors(one("[4]", "[0,3]", "F6_E2M3", 3)) == "");
  CHECK(opener.tensors(one("[0,4611686018427387904,4]", "[0,0]", "F32", 0)) == "");
  refused(two("[0,8]", "[4,12]", 12),
          "data_offsets of tensor 'y': expected a range from 8 on, where the one before ends, got [4, 12]");
  refused(two("[0,8]", "[0,8]", 8), "expected a range from 8 on, where the one before ends, got [0, 8]");
  refused(two("[0,8]", "[9,17]", 17), "data_offsets of tensor 'y': expected a range from 8 on");
  refused(two("[1,9]", "[9,17]", 17), "data_offsets of tensor 'x': expected a range from 0 on");
  refused(safetensors(R"({"x":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
                      R"("x":{"dtype":"F32","shape":[2],"data_offsets":[8,16]}})",
                      std::string(16, '\0')),
          "tensor 'x': expected one of that name, got several");
}

TEST_CASE("safetensors: random damage, 20,000 files") {
  Opener opener;
  const std::string whole = small_safetensors();
  std::mt19937_64 random(2);
  int loaded = 0;
  for (int i = 0; i < 20000; ++i) loaded += opener.tensors(damaged(whole, random, 8 + small_header.size())).empty();
  CHECK(loaded > 50);
  CHECK(loaded < 10000);
}

TEST_CASE("safetensors: many tensors, long names and deep nesting cost memory in proportion") {
  Opener opener;
  std::string header = "{";
  for (int i = 0; i < 20000; ++i)
    header.append(i == 0 ? "\"" : ",\"")
        .append(std::to_string(i))
        .append(R"(":{"dtype":"U8","shape":[],"data_offsets":[)")
        .append(std::to_string(i))
        .append(",")
        .append(std::to_string(i + 1))
        .append("]}");
  header += "}";
  CHECK(opener.tensors(safetensors(header, std::string(20000, 'x'))) == "");
  CHECK(opener.tensors(safetensors("{\"" + std::string(1000000, 'n') + "\":" + std::string(1000000, '[') + "}")) != "");
  CHECK(opener.tensors(safetensors("{\"x\":{\"shape\":[" + std::string(1000000, '1') + "]}}")) != "");
  std::string ones = "1";
  for (int i = 0; i < 100000; ++i) ones += ",1";
  CHECK(opener.tensors(
            safetensors("{\"x\":{\"dtype\":\"U8\",\"shape\":[" + ones + "],\"data_offsets\":[0,1]}}", "x")) == "");
}
