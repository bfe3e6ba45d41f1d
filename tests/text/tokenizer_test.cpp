// test: sanitize
// The tokenizer's parts by known facts, files that ask for what is not supported, files that lie, and hard texts.
#include <doctest/doctest.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "text/files.hpp"
#include "typeformer/text/byte_level.hpp"
#include "typeformer/text/stream_decoder.hpp"
#include "typeformer/text/tokenizer.hpp"
#include "typeformer/text/utf8.hpp"

namespace {

using namespace std::string_literals;
using text_files::error_of;
using text_files::Folder;
using text_files::json;
using text_files::small_tokenizer;
using typeformer::Tokenizer;
using Ids = std::vector<std::int32_t>;

// The error of loading the small tokenizer after a change.
std::string refusal(const std::function<void(json&)>& change) {
  const Folder folder;
  json document = small_tokenizer();
  change(document);
  const auto path = folder.write("tokenizer.json", document.dump());
  return error_of([&] { Tokenizer{path}; });
}

bool contains(const std::string& text, std::string_view part) { return text.find(part) != text.npos; }

double seconds(const std::function<void()>& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace

TEST_CASE("GPT-2 spells bytes as published") {
  namespace text = typeformer::text;
  constexpr auto character = text::byte_level_characters();
  CHECK(character['A'] == 'A');
  CHECK(character[' '] == 0x120);
  CHECK(character['\n'] == 0x10a);
  CHECK(character[0] == 0x100);
  CHECK(character[0x7f] == 0x121);
  CHECK(character[0xad] == 0x143);
  CHECK(character[0xff] == 0xff);
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all += static_cast<char>(byte);
  CHECK(text::byte_level_bytes(text::byte_level_spelling(all)) == all);
  CHECK_FALSE(text::byte_level_bytes(" ").has_value());
  CHECK_FALSE(text::byte_level_bytes("\u4e16").has_value());
}

TEST_CASE("ill-formed UTF-8 becomes U+FFFD by maximal subparts") {
  using typeformer::text::to_valid_utf8;
  const std::string r = "\ufffd";
  // The Unicode Standard's own examples, tables 3-8 to 3-11.
  CHECK(to_valid_utf8("\xC0\xAF\xE0\x80\xBF\xF0\x81\x82\x41"s) == r + r + r + r + r + r + r + r + "A");
  CHECK(to_valid_utf8("\xED\xA0\x80\xED\xBF\xBF\xED\xAF\x41"s) == r + r + r + r + r + r + r + r + "A");
  CHECK(to_valid_utf8("\xF4\x91\x92\x93\xFF\x41\x80\xBF\x42"s) == r + r + r + r + r + "A" + r + r + "B");
  CHECK(to_valid_utf8("\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41"s) == r + r + r + r + "A");
  CHECK(to_valid_utf8("\xF0\x9F\x8C\x8D e\xCC\x81"s) == "\U0001f30d e\u0301");
  for (char32_t code : {0x0u, 0x7fu, 0x80u, 0x7ffu, 0x800u, 0xd7ffu, 0xe000u, 0xffffu, 0x10000u, 0x10ffffu}) {
    std::string text;
    typeformer::text::append_utf8(text, code);
    const auto step = typeformer::text::utf8_step(text);
    CHECK(step.valid);
    CHECK(step.code == code);
    CHECK(step.length == text.size());
  }
}

TEST_CASE("the small tokenizer encodes and decodes") {
  const Folder folder;
  const Tokenizer tokenizer(folder.write("tokenizer.json", small_tokenizer().dump()));
  CHECK(tokenizer.vocab_size() == 260);
  CHECK(tokenizer.encode("").empty());
  CHECK(tokenizer.encode(" the") == Ids{258});
  CHECK(tokenizer.encode("the") == Ids{'t', 257});
  CHECK(tokenizer.encode("a<s> the") == Ids{'a', 259, 258});
  CHECK(tokenizer.encode("<s>", {.special_tokens_in_text = false}) == Ids{'<', 's', '>'});
  CHECK(tokenizer.bytes_of(258) == " the");
  CHECK(tokenizer.spelling_of(258) == "\u0120the");
  CHECK(tokenizer.id_of("\u0120the") == 258);
  CHECK(tokenizer.id_of(" the") == std::nullopt);
  CHECK(tokenizer.is_special(259));
  CHECK_FALSE(tokenizer.is_special(258));
  CHECK(tokenizer.decode(Ids{259, 258}) == "<s> the");
  CHECK(tokenizer.decode(Ids{259, 258}, {.skip_special_tokens = true}) == " the");
  CHECK(tokenizer.encode("\xff") == tokenizer.encode("\ufffd"));
  CHECK(contains(error_of([&] { tokenizer.decode(Ids{260}); }),
                 "token id: expected the id of a token, below 260, got 260"));
  CHECK(contains(error_of([&] { tokenizer.decode(Ids{-1}); }), "got -1"));
  CHECK(contains(error_of([&] { tokenizer.encode("a", {.add_bos = true}); }), "add_bos"));
}

TEST_CASE("a stream never cuts a character and equals whole decoding for any ids") {
  const Folder folder;
  const Tokenizer tokenizer(folder.write("tokenizer.json", small_tokenizer().dump()));
  std::uint32_t random = 1;
  const auto draw = [&](std::uint32_t below) { return (random = random * 1664525u + 1013904223u) / 65536u % below; };
  const Ids world = tokenizer.encode("\u4e16\U0001f30d\u00e9");
  for (int round = 0; round < 3000; ++round) {
    Ids ids;
    for (std::uint32_t i = draw(12); i > 0; --i) {
      ids.push_back(draw(2) != 0 ? world[draw(static_cast<std::uint32_t>(world.size()))]
                                 : static_cast<std::int32_t>(draw(260)));
    }
    typeformer::StreamDecoder stream(tokenizer);
    std::string text;
    for (const std::int32_t id : ids) {
      const std::string piece = stream.next(id);
      REQUIRE(typeformer::text::is_valid_utf8(piece));
      text += piece;
    }
    text += stream.flush();
    REQUIRE(text == tokenizer.decode(ids));
    REQUIRE(stream.flush().empty());
  }
  typeformer::StreamDecoder stream(tokenizer, {.skip_special_tokens = true});
  CHECK(stream.next(world[0]).empty());
  CHECK(stream.next(259).empty());
  CHECK_FALSE(error_of([&] { stream.next(999); }).empty());
  CHECK(stream.next(world[1]).empty());
  CHECK(stream.next(world[2]) == "\u4e16");
}

TEST_CASE("files beside tokenizer.json: special tokens, stop ids, BOS, chat template") {
  const Folder folder;
  folder.write("tokenizer.json", small_tokenizer().dump());
  CHECK(Tokenizer(folder.path()).stop_ids().empty());
  folder.write("tokenizer_config.json",
               R"({"bos_token": "<s>", "eos_token": {"content": "</s>", "lstrip": false}, "add_bos_token": true,
                   "add_prefix_space": true, "model_max_length": 10, "chat_template": "from config"})");
  folder.write("generation_config.json", R"({"eos_token_id": [260, 7]})");
  const Tokenizer tokenizer(folder.path());
  CHECK(tokenizer.bos_id() == 259);
  CHECK(tokenizer.eos_id() == 260);  // named in the configuration alone: it is added
  CHECK(tokenizer.vocab_size() == 261);
  CHECK(Ids(tokenizer.stop_ids().begin(), tokenizer.stop_ids().end()) == Ids{7, 260});
  CHECK(tokenizer.encode("the</s>") ==
        Ids{259, 258, 260});  // BOS, a space before the first word, EOS found in the text
  CHECK(tokenizer.encode("the", {.add_bos = false, .add_eos = true}) == Ids{258, 260});
  CHECK(tokenizer.chat_template() == "from config");
  folder.write("chat_template.jinja", "from file");
  CHECK(Tokenizer(folder.path()).chat_template() == "from file");
  folder.write("tokenizer_config.json",
               R"({"chat_template": [{"name": "tool_use", "template": "t"}, {"name": "default", "template": "d"}]})");
  std::filesystem::remove(folder.path() / "chat_template.jinja");
  std::filesystem::remove(folder.path() / "generation_config.json");
  folder.write("config.json", R"({"eos_token_id": 259})");
  CHECK(Tokenizer(folder.path()).chat_template() == "d");
  CHECK(Tokenizer(folder.path()).stop_ids()[0] == 259);
  folder.write("tokenizer_config.json", R"({"split_special_tokens": true})");
  CHECK(contains(error_of([&] { Tokenizer{folder.path()}; }), "tokenizer_config.json': split_special_tokens"));
  const Folder other;
  other.write("tokenizer.model", "x");
  CHECK(contains(error_of([&] { Tokenizer{other.path()}; }), "expected a tokenizer.json, got only a tokenizer.model"));
  CHECK_FALSE(error_of([&] { Tokenizer{other.path() / "none.json"}; }).empty());
}

TEST_CASE("what is not supported is named") {
  CHECK(refusal([](json&) {}).empty());
  const auto type = [](const char* name) { return json{{"type", name}}; };
  CHECK(contains(refusal([&](json& d) { d["normalizer"] = type("Lowercase"); }),
                 "normalizer.type: expected null, 'NFC'"));
  CHECK(contains(refusal([&](json& d) { d["pre_tokenizer"] = type("Metaspace"); }), "pre_tokenizer.type: expected"));
  CHECK(contains(refusal([&](json& d) {
                   d["pre_tokenizer"] = {{"type", "Digits"}, {"individual_digits", true}};
                 }),
                 "pre_tokenizer: expected ByteLevel"));
  CHECK(contains(refusal([&](json& d) { d["decoder"] = type("Metaspace"); }), "decoder.type"));
  CHECK(contains(refusal([&](json& d) { d["decoder"] = nullptr; }), "'decoder'"));
  CHECK(contains(refusal([&](json& d) { d["post_processor"] = type("Other"); }), "post_processor.type"));
  CHECK(
      contains(refusal([&](json& d) { d["model"]["type"] = "Unigram"; }), "model.type: expected 'BPE', got 'Unigram'"));
  CHECK(contains(refusal([&](json& d) { d["model"]["dropout"] = 0.1; }), "model.dropout: expected null, got 0.1"));
  CHECK(contains(refusal([&](json& d) { d["model"]["byte_fallback"] = true; }), "model.byte_fallback"));
  CHECK(contains(refusal([&](json& d) { d["model"]["end_of_word_suffix"] = "</w>"; }), "model.end_of_word_suffix"));
  CHECK(contains(refusal([&](json& d) { d["model"]["news"] = 1; }), "got 'news'"));
  CHECK(contains(refusal([&](json& d) { d["news"] = 1; }), "got 'news'"));
  CHECK(contains(refusal([&](json& d) { d["added_tokens"][0]["news"] = 1; }), "added_tokens[0]"));
  CHECK(contains(refusal([&](json& d) { d["pre_tokenizer"]["news"] = 1; }), "pre_tokenizer"));
  const auto pattern = [&](const char* regex) {
    return refusal([&](json& d) {
      d["pre_tokenizer"] = {
          {"type", "Sequence"},
          {"pretokenizers",
           json::array(
               {{{"type", "Split"}, {"pattern", {{"Regex", regex}}}, {"behavior", "Isolated"}, {"invert", false}},
                {{"type", "ByteLevel"}, {"use_regex", false}}})}};
    });
  };
  CHECK(pattern("a+").empty());
  for (const char* other :
       {R"(\w)",          R"(\bx)",     R"((?m:a))",  R"((?<n>a))",        R"((a)\1)",   R"([a&&b])",
        R"([[:alpha:]])", R"([^[^a]])", R"(\p{Han})", R"(\p{Alphabetic})", R"(a{1,2}+)", R"(a{,2})",
        R"((*FAIL))",     R"((?R))",    R"([\S])",    R"([a-\d])",         R"(\K)",      R"(a\)",
        R"([a)",          R"((a)",      R"(a))",      R"(\x{110000})",     R"(\ud800)",  "(?i:\\p{Lu})"}) {
    CAPTURE(other);
    CHECK(contains(pattern(other), "pattern"));
  }
}

TEST_CASE("files that lie are refused") {
  CHECK(contains(refusal([](json& d) { d["model"]["vocab"]["x"] = 2147483646; }), "token ids: expected ids below"));
  CHECK(contains(refusal([](json& d) { d["model"]["vocab"]["x"] = 1e18; }), "expected a token id"));
  CHECK(contains(refusal([](json& d) { d["model"]["vocab"]["x"] = -1; }),
                 "model.vocab of 'x': expected a token id, got -1"));
  CHECK(contains(refusal([](json& d) { d["model"]["vocab"]["twice"] = 5; }), "token 5: expected one spelling"));
  CHECK(contains(refusal([](json& d) { d["model"]["merges"].push_back("q q"); }),
                 "merge 3: expected parts and a result that are tokens, got 'qq'"));
  CHECK(contains(refusal([](json& d) { d["model"]["merges"].push_back("qq"); }), "merge 3"));
  CHECK(contains(refusal([](json& d) { d["model"]["merges"].push_back({"a", "b", "c"}); }), "model.merges[3]"));
  CHECK(contains(refusal([](json& d) { d["added_tokens"][0]["id"] = 3000000; }), "token ids"));
  CHECK(
      contains(refusal([](json& d) { d["added_tokens"][0]["content"] = "he"; }), "added token 'he': expected id 257"));
  CHECK(contains(refusal([](json& d) { d["added_tokens"][0]["id"] = 5; }), "token 5"));
  CHECK(contains(refusal([](json& d) { d.erase("model"); }), "'model'"));
  CHECK(contains(refusal([](json& d) { d["model"]["unk_token"] = "none"; }), "model.unk_token"));
  CHECK(contains(refusal([](json& d) {
                   json nested = {{"type", "ByteLevel"}};
                   for (int i = 0; i < 25; ++i)
                     nested = {{"type", "Sequence"}, {"pretokenizers", json::array({nested})}};
                   d["pre_tokenizer"] = nested;
                 }),
                 "fewer levels"));
  const Folder folder;
  CHECK(contains(error_of([&] { Tokenizer{folder.write("tokenizer.json", "{\"model\": ")}; }), "a JSON document"));
  CHECK(contains(error_of([&] { Tokenizer{folder.write("tokenizer.json", std::string(200000, '['))}; }),
                 "a JSON document"));
  CHECK(contains(error_of([&] { Tokenizer{folder.write("tokenizer.json", "[1]")}; }), "an object"));
  CHECK_FALSE(error_of([&] { Tokenizer{folder.write("x.gguf", "GGUF")}; }).empty());
}

TEST_CASE("long words and texts made to be slow take near-linear time") {
  const Folder folder;
  const Tokenizer tokenizer(folder.write("tokenizer.json", small_tokenizer().dump()));
  for (const std::string& unit : {"a"s, " "s, "he"s, " the"s, "<"s, "<s"s, "1"s, "\n"s, " \n"s, "'"s, "\u4e16"s}) {
    CAPTURE(unit);
    const auto text = [&](std::size_t count) {
      std::string out;
      for (std::size_t i = 0; i < count; ++i) out += unit;
      return out;
    };
    const std::string large = text(200000);
    Ids ids;
    // Quadratic work on 200,000 units would take minutes.
    CHECK(seconds([&] { ids = tokenizer.encode(large); }) < 20);
    CHECK(tokenizer.decode(ids) == large);
  }
}

TEST_CASE("a token of white space that takes the space around it is found once") {
  const text_files::Folder folder;
  auto file = text_files::small_tokenizer();
  file["added_tokens"].push_back({{"id", 260},
                                  {"content", "  "},
                                  {"single_word", false},
                                  {"lstrip", true},
                                  {"rstrip", true},
                                  {"normalized", false},
                                  {"special", false}});
  const Tokenizer tokenizer{folder.write("tokenizer.json", file.dump())};
  // As tokenizers 0.23 encodes them.
  CHECK(tokenizer.encode("    ") == std::vector<std::int32_t>{260});
  CHECK(tokenizer.encode("      x") == std::vector<std::int32_t>{260, *tokenizer.id_of("x")});
}

TEST_CASE("what is wrong with a folder names it, however its path is written") {
  const Folder folder;
  json damaged = small_tokenizer();
  damaged["model"]["merges"].push_back("qq");
  folder.write("tokenizer.json", damaged.dump());
  for (const std::string& path : {folder.path().native(), folder.path().native() + "/"})
    CHECK(contains(error_of([&] { Tokenizer{path}; }), folder.path().native()));
}
