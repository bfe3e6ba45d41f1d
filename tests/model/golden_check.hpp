/// A composition on the CPU device against HuggingFace and the judge, on one folder of tests/golden.
#pragma once
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <string>

#include "model/harness.hpp"
#include "reference/golden.hpp"
#include "tolerance.hpp"

namespace harness {

inline std::string golden_folder(const std::string& model) {
  return std::string(std::getenv("TYPEFORMER_GOLDEN")) + "/" + model;
}

/// HuggingFace's f32 results by our names.
inline Results huggingface(const reference::Golden& golden) {
  Results results;
  for (const auto& [name, tensor] : golden.expected)
    if (!name.starts_with("noise.") && !name.starts_with("bf16_error.") && !name.starts_with("grad."))
      results[name] = tensor.data;
  for (const auto& [canonical, hf] : golden.hf_names)
    results["grad." + canonical] = golden.expected.at("grad." + hf).data;
  return results;
}

/// Gradients of vectors - biases, norms' gains, a score's table - are sums over every token in which large terms may
/// cancel (a key's bias even to zero, in theory): their rounding errors are those of the terms, not of the sum.
inline bool sums_over_tokens(const std::string& name) {
  return name.starts_with("grad.") && (name.ends_with("bias") || name.find("norm.weight") != std::string::npos ||
                                       name.find(".ln") != std::string::npos || name.ends_with("relative_bias.weight"));
}

/// Every result of `ours` against the judge, within twice the error of `naive` and a floor. Returns the number of
/// tensors that do not hold; with `report` each of them is a failed check.
inline int count_deviations(const Results& judge, const Results& naive, const Results& ours, std::size_t terms,
                            bool report) {
  int deviations = 0;
  double largest_gradient = 0;
  for (const auto& [name, values] : judge)
    if (name.starts_with("grad."))
      for (const double value : values) largest_gradient = std::max(largest_gradient, std::fabs(value));
  for (const auto& entry : judge) {  // clang 14 lets no lambda, and so no check, name a structured binding
    const auto& name = entry.first;
    const auto& expected = entry.second;
    REQUIRE_MESSAGE(ours.count(name) == 1, name);
    REQUIRE_MESSAGE(naive.count(name) == 1, name);
    tolerance::Rounding rounding{.terms = terms};
    if (sums_over_tokens(name)) rounding.magnitude = largest_gradient;
    const auto verdict = tolerance::compare(name, expected, naive.at(name), ours.at(name), rounding);
    bool ok = verdict.ok;
    if (report) CHECK_MESSAGE(ok, verdict.message);
    if (name.starts_with("logits.")) {
      const auto ceiling = tolerance::below_ceiling(name, expected, ours.at(name));
      ok = ok && ceiling.ok;
      if (report) CHECK_MESSAGE(ceiling.ok, ceiling.message);
    }
    deviations += ok ? 0 : 1;
  }
  return deviations;
}

/// The longest sum behind one number of a tiny model: tokens of the batch for gradients, d_ff or d_model for
/// activations.
inline std::size_t longest_sum(const reference::Config& config, const reference::Batch& batch) {
  std::size_t tokens = 0;
  for (const reference::Sequence& sequence : batch) tokens += sequence.ids.size();
  return std::max({config.d_model, config.stack.ffn.width, tokens});
}

/// The judge's logits at the positions that chose each token, from one pass over prompt and answer.
inline std::vector<double> judged_steps(const reference::Golden& golden,
                                        const reference::Parameters<double>& parameters,
                                        const std::vector<std::int32_t>& answer) {
  reference::Sequence whole = golden.batch[0];
  const std::size_t prompt = whole.ids.size();
  whole.ids.insert(whole.ids.end(), answer.begin(), answer.end() - 1);
  const auto logits = reference::forward(golden.config, parameters, {whole})[0].logits;
  return {logits.row(prompt - 1), logits.row(prompt - 1) + answer.size() * logits.columns()};
}

struct GoldenCase {
  reference::Golden golden;
  Inputs in;
  Results judge, hf;
  explicit GoldenCase(const std::string& folder)
      : golden(reference::load_golden(golden_folder(folder))), in(inputs_of(golden.batch)),
        judge(judged(golden.config, golden.parameters, golden.batch)), hf(huggingface(golden)) {}
};

/// How many tensors of composition M, with the golden's weights, deviate from the golden.
template <class M>
int deviations(const GoldenCase& c, bool report = false) {
  cpu::Device device(2);
  const auto model = model_of<M>(device, c.golden.parameters);
  return count_deviations(c.judge, c.hf, run(model, c.in), longest_sum(c.golden.config, c.golden.batch), report);
}

}  // namespace harness
