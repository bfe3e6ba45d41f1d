/// Bodies of chat_template.hpp.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "typeformer/core/annotate.hpp"
#include "typeformer/core/error.hpp"
#include "typeformer/text/chat_template.hpp"
#include "typeformer/text/jinja/evaluator.hpp"
#include "typeformer/text/jinja/json_value.hpp"
#include "typeformer/text/jinja/parser.hpp"
#include "typeformer/text/jinja/value.hpp"
#include "typeformer/text/utf8.hpp"

namespace typeformer::inline TYPEFORMER_ABI {

namespace text::jinja {

inline Value text_value(std::string_view text) { return Value(to_valid_utf8(text)); }

/// The template with these messages and the variables of the options.
inline std::string render_messages(const Template& source, Value messages, const RenderOptions& options) {
  Value::Dict variables;
  variables.set("messages", std::move(messages));
  variables.set("tools", Value());
  variables.set("documents", Value());
  variables.set("add_generation_prompt", Value(options.add_generation_prompt));
  if (!options.bos_token.empty()) variables.set("bos_token", text_value(options.bos_token));
  if (!options.eos_token.empty()) variables.set("eos_token", text_value(options.eos_token));
  const Value further = JsonValueReader("variables").value(options.variables);
  if (further.dict() == nullptr) throw Error("ChatTemplate::render", "variables", "a JSON object", further.kind());
  for (const auto& [name, value] : further.dict()->items) variables.set(name, value);
  std::uint64_t characters = 0;
  for (const auto& item : variables.items) characters += item.second.weight();
  const Budget budget(options.budget + 64 * characters);
  return Evaluator(std::move(variables), budget).render(source.body);
}

}  // namespace text::jinja

TYPEFORMER_INLINE ChatTemplate::ChatTemplate(std::string_view source) {
  constexpr std::size_t longest = std::size_t{1} << 20;
  if (source.size() > longest)
    throw Error("ChatTemplate", "source", "at most 2^20 bytes", std::to_string(source.size()));
  template_ = std::make_shared<const text::jinja::Template>(text::jinja::Parser(text::to_valid_utf8(source)).parse());
}

TYPEFORMER_INLINE std::string ChatTemplate::render(std::span<const Message> messages,
                                                   const RenderOptions& options) const {
  using text::jinja::Value;
  std::vector<Value> list;
  for (const Message& message : messages) {
    Value::Dict turn;
    turn.set("role", text::jinja::text_value(message.role));
    turn.set("content", text::jinja::text_value(message.content));
    list.emplace_back(std::move(turn));
  }
  return render_messages(*template_, Value(Value::List{std::move(list)}), options);
}

TYPEFORMER_INLINE std::string ChatTemplate::render_json(std::string_view messages, const RenderOptions& options) const {
  return render_messages(*template_, text::jinja::JsonValueReader("messages").value(messages), options);
}

}  // namespace typeformer
