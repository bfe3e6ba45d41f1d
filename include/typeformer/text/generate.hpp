/// Text in, text out: a prompt through the model's chat template, the tokens after it, and their characters as they
/// come.
#pragma once
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "typeformer/model/sampling.hpp"
#include "typeformer/model/transformer.hpp"
#include "typeformer/text/chat_template.hpp"
#include "typeformer/text/stream_decoder.hpp"
#include "typeformer/text/tokenizer.hpp"

namespace typeformer::inline TYPEFORMER_ABI {

/// How a prompt is continued: SamplingOptions, and when to stop.
struct GenerateOptions {
  int max_tokens = 256;     ///< 0 or less: the prompt is read, nothing is generated
  float temperature = 0.f;  ///< 0: greedy; see SamplingOptions
  int top_k = 0;
  float top_p = 1.f;
  std::uint64_t seed = 0;
  bool chat = true;                         ///< the prompt is a user's turn in the model's chat template, if it has one
  std::vector<std::int32_t> stop_tokens{};  ///< besides those of the model's files
};

/// What was generated, and how long it took.
struct Generation {
  std::vector<std::int32_t> prompt_ids, ids;  ///< ids without the stop token
  std::string text;
  bool stopped = false;  ///< by a stop token; else max_tokens or the capacity was reached
  double prefill_seconds = 0, decode_seconds = 0;

  double prefill_tokens_per_second() const { return static_cast<double>(prompt_ids.size()) / prefill_seconds; }
  /// Of the tokens after the first, which the prefill gives.
  double decode_tokens_per_second() const {
    return ids.size() > 1 ? static_cast<double>(ids.size() - 1) / decode_seconds : 0;
  }
};

/// The ids of a prompt: a user's turn in the chat template when the tokenizer's files have one and `chat` is set, else
/// the text as it is.
inline std::vector<std::int32_t> prompt_ids(const Tokenizer& tokenizer, std::string_view prompt, bool chat = true) {
  if (!chat || tokenizer.chat_template().empty()) return tokenizer.encode(prompt);
  const Message turn{"user", std::string(prompt)};
  const std::string rendered = ChatTemplate(tokenizer.chat_template())
                                   .render(std::span(&turn, 1), {.bos_token = std::string(tokenizer.bos_token()),
                                                                 .eos_token = std::string(tokenizer.eos_token())});
  return tokenizer.encode(rendered, {.add_bos = false, .add_eos = false});
}

namespace detail {

/// For a caller who waits for the whole answer.
struct NoText {
  void operator()(std::string_view) const {}
};

}  // namespace detail

/// Continues the ids. on_text(piece) gets whole characters as soon as they are certain; an id that is no token (a row
/// that the model's vocabulary was padded with) has no text. `state` must be empty or hold a prefix that the ids
/// continue; afterwards it holds the prompt and the generated ids, but of these not the last when max_tokens or the
/// capacity ended it (no pass has read it), and never the stop token: a next turn begins with what is missing. Throws
/// Error, before anything changes, when there are no ids, they exceed the state's capacity, or an option is out of
/// range.
template <Composition M, class Device, Storage W, class OnText = detail::NoText>
Generation generate(const Model<M, Device, W>& model, State<M, Device, activation_t<Device, W>>& state,
                    const Tokenizer& tokenizer, std::span<const std::int32_t> ids, const GenerateOptions& options = {},
                    OnText&& on_text = {}) {
  using Clock = std::chrono::steady_clock;
  const auto seconds = [](Clock::time_point from) {
    return std::chrono::duration<double>(Clock::now() - from).count();
  };
  const SamplingOptions sampling{options.temperature, options.top_k, options.top_p, options.seed};
  const auto stops = [&](std::int32_t id) {
    const auto of_file = tokenizer.stop_ids();
    return std::find(of_file.begin(), of_file.end(), id) != of_file.end() ||
           std::find(options.stop_tokens.begin(), options.stop_tokens.end(), id) != options.stop_tokens.end();
  };
  if (ids.empty()) throw Error("generate", "ids", "at least one token", "none");
  detail::check_sampling(sample_rule(sampling, 0), static_cast<std::size_t>(M::dims.vocab));
  Generation result;
  result.prompt_ids.assign(ids.begin(), ids.end());
  StreamDecoder decoder(tokenizer);
  const auto say = [&](const std::string& piece) {
    if (piece.empty()) return;
    result.text += piece;
    on_text(std::string_view(piece));
  };
  const auto start = Clock::now();
  std::int32_t id = extend_and_sample(model, state, ids, sampling);
  result.prefill_seconds = seconds(start);
  const auto first = Clock::now();
  while (static_cast<int>(result.ids.size()) < options.max_tokens) {
    result.stopped = stops(id);
    if (result.stopped) break;
    result.ids.push_back(id);
    if (tokenizer.has(id)) say(decoder.next(id));
    if (static_cast<int>(result.ids.size()) == options.max_tokens || state.length() == state.capacity()) break;
    id = extend_and_sample(model, state, std::span(&id, 1), sampling, result.ids.size());
  }
  result.decode_seconds = seconds(first);
  say(decoder.flush());
  return result;
}

/// Answers a prompt, with a state of its own for as many positions as it needs.
template <Composition M, class Device, Storage W, class OnText = detail::NoText>
Generation generate(const Model<M, Device, W>& model, const Tokenizer& tokenizer, std::string_view prompt,
                    const GenerateOptions& options = {}, OnText&& on_text = {}) {
  const auto ids = prompt_ids(tokenizer, prompt, options.chat);
  const std::int64_t positions = static_cast<std::int64_t>(ids.size()) + std::max(options.max_tokens, 0);
  State state(model, {.capacity = static_cast<int>(std::clamp<std::int64_t>(positions, 1, M::dims.max_seq))});
  return generate(model, state, tokenizer, ids, options, on_text);
}

}  // namespace typeformer
