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
    if (!name.starts_with("noise.") && !name.starts_with("grad.")) results[name] = tensor.data;
  for (const auto& [canonical, hf] : golden.hf_names)
    results["grad." + canonical] = golden.expected.at("grad." + hf).data;
  return results;
}

inline double norm(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value * value;
  return std::sqrt(sum);
}
inline bool is_gradient(const std::string& name) { return name.starts_with("grad."); }

/// The naive code's relative error (norm of the difference over norm): the median over a network's gradients, or over
/// its other results. One tensor of a few elements may be exact by luck; the precision of a whole backward pass is not.
inline double usual_error(const Results& judge, const Results& naive, bool gradients) {
  std::vector<double> errors;
  for (const auto& [name, expected] : judge) {
    if (is_gradient(name) != gradients || norm(expected) == 0) continue;
    std::vector<double> difference = naive.at(name);
    for (std::size_t i = 0; i < difference.size(); ++i) difference[i] -= expected[i];
    errors.push_back(norm(difference) / norm(expected));
  }
  std::sort(errors.begin(), errors.end());
  return errors.empty() ? 0 : errors[errors.size() / 2];
}

/// Every result of `ours` against the judge: within twice the error of `naive` in that tensor and a floor, or within
/// twice the usual error of `naive` in this network. Returns the number of tensors that do not hold; with `report` each
/// of them is a failed check.
inline int count_deviations(const Results& judge, const Results& naive, const Results& ours, std::size_t terms,
                            bool report) {
  int deviations = 0;
  double largest_gradient = 0;
  for (const auto& [name, values] : judge)
    if (is_gradient(name))
      for (const double value : values) largest_gradient = std::max(largest_gradient, std::fabs(value));
  const double usual[] = {usual_error(judge, naive, false), usual_error(judge, naive, true)};
  for (const auto& [name, expected] : judge) {
    REQUIRE_MESSAGE(ours.count(name) == 1, name);
    REQUIRE_MESSAGE(naive.count(name) == 1, name);
    tolerance::Rounding rounding{.terms = terms};
    if (name.ends_with("k_proj.bias"))
      rounding.magnitude = largest_gradient;  // zero in theory where nothing stands between q and k
    const auto verdict = tolerance::compare(name, expected, naive.at(name), ours.at(name), rounding);
    bool ok = verdict.ok || verdict.error <= 2 * usual[is_gradient(name)] * norm(expected);
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
template <class M>
std::size_t longest_sum(const Inputs& in) {
  const auto widest = [] {
    if constexpr (two_stacks<M>)
      return std::max(M::Decoder::dims.d_ff, M::Decoder::dims.d_model);
    else
      return std::max(M::dims.d_ff, M::dims.d_model);
  }();
  return std::max(static_cast<std::size_t>(widest), in.target.ids.size());
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
  return count_deviations(c.judge, c.hf, run(model, c.in), longest_sum<M>(c.in), report);
}

}  // namespace harness
