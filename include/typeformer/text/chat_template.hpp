/// Chats as the text a model was trained on, by the template that its tokenizer brings.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "typeformer/core/annotate.hpp"

namespace typeformer::inline TYPEFORMER_ABI {

namespace text::jinja {
struct Template;
}

/// One turn of a chat. role: "system", "user", "assistant", or what else the template knows.
struct Message {
  std::string role, content;
};

/// What a template sees besides the messages.
struct RenderOptions {
  bool add_generation_prompt = true;  ///< end where the assistant begins to speak
  std::string bos_token = {};         ///< Tokenizer::bos_token(); undefined in the template when ""
  std::string eos_token = {};         ///< the same for EOS
  /// Further variables as the text of a JSON object, such as R"({"tools": [...]})"; they replace the ones above.
  /// `tools` and `documents` are none unless given.
  std::string variables = "{}";
  /// Bound on the work, in steps and characters: a hostile template ends with an Error within seconds. On top of it
  /// come 64 for every character of the messages and variables.
  std::uint64_t budget = 20'000'000;
};

/// A chat template, parsed once: the subset of Jinja 3 that such templates use, in transformers' environment
/// (trim_blocks, lstrip_blocks, break and continue, raise_exception, namespace). What is not supported (macros,
/// strftime_now, filters such as selectattr, ...) is an Error naming the construct and its line, never ignored.
/// Two differences from Jinja: upper, lower, title and capitalize map character by character (Python also maps some to
/// two or three, and a final sigma by its place), and inside a loop, a name that the block around the loop sets only
/// after the loop has the value from further out (in Jinja it is undefined there). Immutable: one object serves many
/// threads.
class ChatTemplate {
 public:
  /// Throws Error naming the line for a source that cannot be parsed.
  explicit ChatTemplate(std::string_view source);

  /// The chat as text. It holds all special tokens, so encode it with add_bos = false.
  /// Throws Error for what the template raises (raise_exception), and where it goes wrong or over budget.
  std::string render(std::span<const Message> messages, const RenderOptions& options = {}) const;

  /// The same for messages as the text of a JSON list of objects, with whatever members the template reads.
  std::string render_json(std::string_view messages, const RenderOptions& options = {}) const;

 private:
  std::shared_ptr<const text::jinja::Template> template_;
};

}  // namespace typeformer

#if !defined(TYPEFORMER_SEPARATE_COMPILATION)
#include "typeformer/text/chat_template_impl.hpp"
#endif
