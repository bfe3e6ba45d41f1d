/// A model on the CUDA device against HuggingFace and the judge: in f32 like the CPU's tests, in bf16 against the error
/// that PyTorch's bf16 has.
#pragma once
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "model.hpp"
#include "model/golden_check.hpp"
#include "support.hpp"

namespace models {

using harness::Results;
using support::Number;

/// What was sampled where the logits are is what sample() makes of them on the host.
inline void check_sampled(const Steps& steps) {
  REQUIRE(steps.sampled.size() == steps.ids.size());
  const std::size_t vocab = steps.logits.size() / steps.ids.size();
  for (std::size_t step = 0; step < steps.sampled.size(); ++step)
    CHECK(steps.sampled[step] ==
          typeformer::sample(std::span(steps.logits).subspan(step * vocab, vocab), sampling_options(), step));
}

inline void check_f32(const std::string& name) {
  const harness::GoldenCase c(name);
  const Results ours = run(name, Number::f32, c.golden.parameters, c.golden.batch);
  CHECK(harness::count_deviations(c.judge, c.hf, ours, harness::longest_sum(c.golden.config, c.golden.batch), true) ==
        0);

  const auto& expected = c.golden.expected.at("greedy.ids").data;
  const Steps steps = decode(name, Number::f32, c.golden.parameters, c.golden.batch[0], expected.size(), {});
  REQUIRE(steps.ids == std::vector<std::int32_t>(expected.begin(), expected.end()));
  const auto terms = harness::longest_sum(c.golden.config, {c.golden.batch[0]});
  const auto verdict =
      tolerance::compare("greedy.logits", harness::judged_steps(c.golden, c.golden.parameters, steps.ids),
                         c.golden.expected.at("greedy.logits").data, steps.logits, {.terms = terms});
  CHECK_MESSAGE(verdict.ok, verdict.message);
  check_sampled(steps);
}

/// At most twice PyTorch's error; of a few numbers, which may be exact by chance, and of sums over all tokens, whose
/// terms are larger than they, also one rounding to bf16.
inline void compare_bf16(const reference::Golden& golden, const std::string& name, const std::vector<double>& judge,
                         const std::vector<double>& ours, bool sums = false) {
  const auto& theirs = golden.expected.at("bf16_error." + name).data;
  const double roundoff = judge.size() < 16 || sums ? tolerance::bf16_roundoff : 0;
  const auto verdict = tolerance::compare_error(name, judge, theirs[0], ours, {.terms = 1, .roundoff = roundoff});
  if (std::getenv("TYPEFORMER_VERBOSE"))
    std::printf("%s: error %.3g, PyTorch's %.3g, floor %.3g\n", name.c_str(), verdict.error, theirs[0], verdict.floor);
  CHECK_MESSAGE(verdict.ok, verdict.message);
}

inline void check_bf16(const std::string& name) {
  const harness::GoldenCase c(name);
  auto parameters = c.golden.parameters;
  for (auto& [_, tensor] : parameters)
    for (double& value : tensor.data) value = support::rounded(Number::bf16, value);
  const Results judge = harness::judged(c.golden.config, parameters, c.golden.batch);
  const Results ours = run(name, Number::bf16, parameters, c.golden.batch);
  for (const auto& [key, expected] : judge) {
    const bool gradient = key.starts_with("grad.");
    compare_bf16(c.golden, gradient ? "grad." + c.golden.hf_names.at(key.substr(5)) : key, expected, ours.at(key),
                 harness::sums_over_tokens(key));
  }

  std::vector<std::int32_t> given;
  for (const double id : c.golden.expected.at("greedy.ids").data) given.push_back(static_cast<std::int32_t>(id));
  const Steps steps = decode(name, Number::bf16, parameters, c.golden.batch[0], given.size(), given);
  compare_bf16(c.golden, "greedy.logits", harness::judged_steps(c.golden, parameters, given),
               {steps.logits.begin(), steps.logits.end()});
  check_sampled(steps);
}

inline void check(const std::string& name) {
  SUBCASE("f32") { check_f32(name); }
  SUBCASE("bf16") { check_bf16(name); }
}

}  // namespace models
