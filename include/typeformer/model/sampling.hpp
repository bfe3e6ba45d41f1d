/// From logits to the next token.
#pragma once
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "typeformer/core/error.hpp"
#include "typeformer/kernel/contract.hpp"
#include "typeformer/kernel/token_choice.hpp"

namespace typeformer::inline TYPEFORMER_ABI {

/// How tokens are chosen, by default the likeliest; SampleRule says what each field means.
struct SamplingOptions {
  float temperature = 0.f;
  int top_k = 0;
  float top_p = 1.f;
  std::uint64_t seed = 0;
};

/// Draw number `step` of these options.
constexpr SampleRule sample_rule(const SamplingOptions& options, std::uint64_t step) {
  return {options.seed, step, options.temperature, options.top_k, options.top_p};
}

namespace detail {

inline void check_sampling(const SampleRule& rule, std::size_t vocab) {
  if (!(rule.temperature >= 0.f) || std::isinf(rule.temperature))
    throw Error("sample", "temperature", "a finite number of 0 or more", std::to_string(rule.temperature));
  if (rule.top_k < 0) throw Error("sample", "top_k", "0 (all) or more", std::to_string(rule.top_k));
  if (!(rule.top_p > 0.f && rule.top_p <= 1.f))
    throw Error("sample", "top_p", "above 0 and at most 1", std::to_string(rule.top_p));
  if (vocab == 0) throw Error("sample", "logits", "at least one", "none");
  if (vocab > largest_vocab)
    throw Error("sample", "logits", "at most " + std::to_string(largest_vocab), std::to_string(vocab));
}

/// The id that sample_rows gave. Throws Error where it is none.
inline std::int32_t token_of(std::int32_t id) {
  switch (static_cast<NoToken>(id)) {
    case NoToken::not_a_number:
      throw Error("sample", "logits", "numbers", "NaN");
    case NoToken::infinite:
      throw Error("sample", "logits", "finite numbers or -infinity", "+infinity");
    case NoToken::nothing:
      throw Error("sample", "logits", "a number above -infinity", "none");
  }
  return id;
}

}  // namespace detail

/// The token to come after `logits`. Draw number `step` of the seed: equal arguments give equal tokens.
/// Throws Error for options out of range, for a logit that is NaN or +infinity, and when all are -infinity.
inline std::int32_t sample(std::span<const float> logits, const SamplingOptions& options, std::uint64_t step = 0) {
  const SampleRule rule = sample_rule(options, step);
  detail::check_sampling(rule, logits.size());
  detail::TeamOfOne team;
  return detail::token_of(detail::choose_token(team, logits.data(), static_cast<int>(logits.size()), rule));
}

}  // namespace typeformer
