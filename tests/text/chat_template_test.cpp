// test: sanitize
// Chats rendered by transformers' engine (golden/chat_templates.py), each construct by Jinja's documented meaning, and
// templates made to hurt.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "text/files.hpp"
#include "typeformer/text/chat_template.hpp"

namespace {

using text_files::error_of;
using typeformer::ChatTemplate;
using typeformer::Message;
using typeformer::RenderOptions;
using json = nlohmann::ordered_json;

const json variables = {{"x", 3},
                        {"s", " H\u00e9llo w\u00f6rld \n"},
                        {"l", {1, 2.5, "a", nullptr, true}},
                        {"d", {{"b", "it's"}, {"a", json::array()}}}};

std::string render(std::string_view source, const json& messages = json::array()) {
  return ChatTemplate(source).render_json(
      messages.dump(), {.add_generation_prompt = true, .bos_token = "<s>", .variables = variables.dump()});
}
std::string refusal(std::string_view source, std::uint64_t budget = 20'000'000) {
  return error_of([&] { ChatTemplate(source).render_json("[]", {.variables = variables.dump(), .budget = budget}); });
}
bool contains(const std::string& text, std::string_view part) {
  CAPTURE(text);
  return text.find(part) != text.npos;
}

}  // namespace

TEST_CASE("templates of the usual forms agree with transformers") {
  const auto lines = text_files::lines<json>(text_files::golden() / "text" / "chat_templates.jsonl");
  REQUIRE(lines.size() >= 50);
  for (const json& line : lines) {
    CAPTURE(line.dump());
    std::vector<Message> messages;
    for (const json& message : line["messages"]) messages.push_back({message["role"], message["content"]});
    const RenderOptions options{.add_generation_prompt = line["add_generation_prompt"],
                                .bos_token = line["bos_token"],
                                .eos_token = line["eos_token"]};
    const ChatTemplate chat(line["template"].get<std::string>());
    CHECK(chat.render(messages, options) == line["expected"].get<std::string>());
    CHECK(chat.render_json(line["messages"].dump(), options) == line["expected"].get<std::string>());
  }
}

TEST_CASE("constructs agree with Jinja") {
  const auto lines = text_files::lines<json>(text_files::own_golden() / "jinja.jsonl");
  REQUIRE(lines.size() >= 400);
  const json& shared = lines.front();
  for (std::size_t i = 1; i < lines.size(); ++i) {
    const json& line = lines[i];
    CAPTURE(line.dump());
    const auto call = [&] {
      return ChatTemplate(line["template"].get<std::string>())
          .render_json(shared["messages"].dump(), {.add_generation_prompt = line["add_generation_prompt"],
                                                   .bos_token = "<s>",
                                                   .eos_token = "</s>",
                                                   .variables = shared["variables"].dump()});
    };
    if (line["expected"].is_null()) {
      CHECK_FALSE(error_of([&] { call(); }).empty());
    } else {
      CHECK(call() == line["expected"].get<std::string>());
    }
  }
}

TEST_CASE("errors name the construct and the line") {
  CHECK(contains(refusal("a\n{% macro f() %}{% endmacro %}"),
                 "line 2: expected constructs that chat templates use, got the tag 'macro'"));
  CHECK(contains(refusal("{{ x | wordwrap }}"),
                 "line 1: expected constructs that chat templates use, got the filter 'wordwrap'"));
  CHECK(contains(refusal("{{ x is sameas(1) }}"), "the test 'sameas'"));
  CHECK(contains(refusal("\n\n{{ s.zfill(3) }}"),
                 "line 3: expected constructs that chat templates use, got the method 'zfill' of a string"));
  CHECK(contains(refusal("{{ strftime_now('%d') }}"), "the function 'strftime_now'"));
  CHECK(render("{{ strftime_now is defined }}") == "True");  // as in transformers
  CHECK(contains(refusal("{{ nothing.more }}"), "'nothing', which is undefined"));
  CHECK(contains(refusal("{{ d.c.e }}"), "the attribute 'c', which is undefined"));
  CHECK(contains(refusal("{{ raise_exception('roles must alternate') }}"), "got roles must alternate"));
  CHECK(contains(refusal("{% if x %}"), "expected '{% endif %}', got the end of the template"));
  CHECK(contains(refusal("{{ x"), "'}}' that ends the expression"));
  CHECK(contains(refusal("{{ 'abc }}"), "the end of the string"));
  CHECK(contains(refusal("{{ (x] }}"), "brackets in pairs"));
  CHECK(contains(refusal("{% break %}"), "a loop around 'break'"));
  CHECK(contains(refusal("{{ '%s' % x }}"), "formatting"));
  CHECK(contains(refusal("{{ x ** 2 }}"), "'**'"));
  CHECK(contains(refusal("{{ 1 // 0 }}"), "not zero"));
  CHECK(contains(refusal("{{ 9223372036854775807 + 1 }}"), "64 bits"));
  CHECK(contains(refusal("{{ s.strip(1, 2) }}"), "strip"));
  CHECK(contains(refusal("{{ x | default(1, nonsense=2) }}"), "default"));
}

TEST_CASE("templates made to hurt end with an Error") {
  const auto repeat = [](const std::string& unit, int count) {
    std::string out;
    for (int i = 0; i < count; ++i) out += unit;
    return out;
  };
  const std::string limit = "work within the limit";
  CHECK(contains(refusal("{% for i in range(10000000000) %}{% endfor %}"), limit));
  CHECK(contains(refusal("{{ 'a' * 10000000000 }}"), limit));
  CHECK(contains(refusal("{{ 'a' * 4611686018427387904 }}"), limit));
  CHECK(contains(
      refusal("{% set n = namespace(s='ab') %}{% for i in range(99) %}{% set n.s = n.s ~ n.s %}{% endfor %}"), limit));
  CHECK(contains(refusal("{% set n = namespace(l=[1]) %}{% for i in range(99) %}{% set n.l = n.l + n.l %}{% endfor %}"),
                 limit));
  CHECK(contains(refusal(repeat("{% for i in range(1000) %}", 5) + "x" + repeat("{% endfor %}", 5)), limit));
  CHECK(contains(refusal("{% set n = namespace(v=[]) %}{% for i in range(500) %}{% set n.v = [n.v] %}{% endfor %}"),
                 "nested at most"));
  CHECK(contains(refusal("{% set n = namespace(v=1) %}{% set n.v = n %}"), "plain values"));
  CHECK(contains(refusal("{{ " + repeat("(", 100000) + "x" + repeat(")", 100000) + " }}"), "levels of nesting"));
  CHECK(contains(refusal("{{ " + repeat("not ", 100000) + "x }}"), "levels of nesting"));
  CHECK(contains(refusal("{{ " + repeat("-", 100000) + "x }}"), "levels of nesting"));
  CHECK(contains(refusal("{{ x" + repeat(" + 1", 100000) + " }}"), "levels"));
  CHECK(contains(refusal("{{ x" + repeat("[0]", 100000) + " }}"), "levels"));
  CHECK(contains(refusal(repeat("{% if x %}", 100000)), "levels of nesting"));
  CHECK_FALSE(refusal(repeat("{{", 100000)).empty());
  CHECK_FALSE(refusal("{{ " + repeat("(", 100000)).empty());
  CHECK(contains(refusal("{% for i in range(10000) %}{% endfor %}", 1000), limit));
  json deep = 1;
  for (int i = 0; i < 1000; ++i) deep = json::array({deep});
  CHECK(contains(error_of([&] { ChatTemplate("").render_json(deep.dump()); }), "levels"));
  const auto given = [](std::string_view messages, std::string text) {
    return error_of([&] { ChatTemplate("").render_json(messages, {.variables = std::move(text)}); });
  };
  CHECK(contains(given("[", "{}"), "'messages': JSON at byte"));
  CHECK(contains(given("[]", "{]"), "'variables': JSON at byte"));
  CHECK(contains(given("[]", "[1]"), "variables: expected a JSON object, got a list"));
  CHECK(contains(given(R"([{"role": "a", "role": "b"}])", "{}"), "every key once in an object, got 'role'"));
  CHECK(contains(given("[18446744073709551615]", "{}"), "integers of 64 bits"));
  CHECK(contains(given(std::string_view("[]\0", 3), "{}"), "a zero byte"));
  CHECK_FALSE(error_of([&] { ChatTemplate(std::string(3 << 20, 'a')); }).empty());
}

TEST_CASE("text that is not UTF-8 stays harmless") {
  const std::vector<Message> messages = {{"user", "a\xff\xe4"}};
  CHECK(ChatTemplate("{{ messages[0].content | upper }}\xff").render(messages) == "A\ufffd\ufffd\ufffd");
}
