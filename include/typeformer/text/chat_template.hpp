/// Chats as the text a model was trained on, by the template that its tokenizer brings.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "typeformer/core/annotate.hpp"
#include "typeformer/core/error.hpp"
#include "typeformer/text/jinja/evaluator.hpp"
#include "typeformer/text/jinja/parser.hpp"
#include "typeformer/text/jinja/value.hpp"
#include "typeformer/text/utf8.hpp"

namespace typeformer::inline TYPEFORMER_ABI {

/// One turn of a chat. role: "system", "user", "assistant", or what else the template knows.
struct Message {
  std::string role, content;
};

/// What a template sees besides the messages.
struct RenderOptions {
  bool add_generation_prompt = true;  ///< end where the assistant begins to speak
  std::string bos_token = {};         ///< Tokenizer::bos_token(); undefined in the template when ""
  std::string eos_token = {};         ///< the same for EOS
  /// Further variables, a JSON object; they replace the ones above. `tools` and `documents` are none unless given.
  nlohmann::ordered_json variables = nlohmann::ordered_json::object();
  /// Bound on the work, in steps and characters: a hostile template ends with an Error within seconds. On top of it
  /// come 64 for every character of the messages and variables.
  std::uint64_t budget = 20'000'000;
};

/// A chat template, parsed once: the subset of Jinja 3 that such templates use, in transformers' environment
/// (trim_blocks, lstrip_blocks, break and continue, raise_exception, namespace). What is not supported (macros,
/// strftime_now, filters such as selectattr, ...) is an Error naming the construct and its line, never ignored.
/// Immutable: one object serves many threads.
class ChatTemplate {
 public:
  /// Throws Error naming the line for a source that cannot be parsed.
  explicit ChatTemplate(std::string_view source) : block_(parse(source)) {}

  /// The chat as text. It holds all special tokens, so encode it with add_bos = false.
  /// Throws Error for what the template raises (raise_exception), and where it goes wrong or over budget.
  std::string render(std::span<const Message> messages, const RenderOptions& options = {}) const {
    std::vector<text::jinja::Value> list;
    for (const Message& message : messages) {
      text::jinja::Value::Dict turn;
      turn.set("role", text_value(message.role));
      turn.set("content", text_value(message.content));
      list.emplace_back(std::move(turn));
    }
    return render(text::jinja::Value(text::jinja::Value::List{std::move(list)}), options);
  }

  /// The same for messages as JSON: a list of objects with whatever members the template reads.
  std::string render(const nlohmann::ordered_json& messages, const RenderOptions& options = {}) const {
    return render(value_of(messages), options);
  }

 private:
  using Value = text::jinja::Value;

  static std::shared_ptr<const text::jinja::Block> parse(std::string_view source) {
    constexpr std::size_t longest = std::size_t{1} << 20;
    if (source.size() > longest)
      throw Error("ChatTemplate", "source", "at most 2^20 bytes", std::to_string(source.size()));
    return std::make_shared<const text::jinja::Block>(text::jinja::Parser(text::to_valid_utf8(source)).parse());
  }

  std::string render(Value messages, const RenderOptions& options) const {
    Value::Dict variables;
    variables.set("messages", std::move(messages));
    variables.set("tools", Value());
    variables.set("documents", Value());
    variables.set("add_generation_prompt", Value(options.add_generation_prompt));
    if (!options.bos_token.empty()) variables.set("bos_token", text_value(options.bos_token));
    if (!options.eos_token.empty()) variables.set("eos_token", text_value(options.eos_token));
    if (!options.variables.is_object())
      throw Error("ChatTemplate::render", "variables", "a JSON object", options.variables.type_name());
    for (const auto& [name, value] : options.variables.items()) variables.set(name, value_of(value));
    std::uint64_t characters = 0;
    for (const auto& item : variables.items) characters += item.second.weight();
    const text::jinja::Budget budget(options.budget + 64 * characters);
    return text::jinja::Evaluator(std::move(variables), budget).render(*block_);
  }

  static Value text_value(std::string_view text) { return Value(text::to_valid_utf8(text)); }

  static Value value_of(const nlohmann::ordered_json& json, std::size_t depth = 0) {
    if (depth > text::jinja::deepest_value)
      throw Error("ChatTemplate::render", "JSON", "at most " + std::to_string(text::jinja::deepest_value) + " levels",
                  "more");
    if (json.is_boolean()) return Value(json.get<bool>());
    if (json.is_number_integer()) {
      if (json.is_number_unsigned() && json.get<std::uint64_t>() > std::uint64_t{INT64_MAX})
        throw Error("ChatTemplate::render", "JSON", "integers of 64 bits", "a larger one");
      return Value(json.get<std::int64_t>());
    }
    if (json.is_number()) return Value(json.get<double>());
    if (json.is_string()) return text_value(json.get_ref<const std::string&>());
    if (json.is_array()) {
      Value::List list;
      for (const auto& item : json) list.items.push_back(value_of(item, depth + 1));
      return list;
    }
    if (json.is_object()) {
      Value::Dict dict;
      for (const auto& [key, item] : json.items()) dict.set(text::to_valid_utf8(key), value_of(item, depth + 1));
      return dict;
    }
    if (json.is_null()) return {};
    throw Error("ChatTemplate::render", "JSON", "JSON's own kinds", json.type_name());
  }

  std::shared_ptr<const text::jinja::Block> block_;
};

}  // namespace typeformer
