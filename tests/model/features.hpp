/// What each feature of a composition is worth: the composition with one thing changed must not pass the golden.
#pragma once
#include <algorithm>
#include <cstdio>
#include <vector>

#include "model/golden_check.hpp"
#include "model/tiny_models.hpp"

namespace features {
using namespace typeformer;

/// The golden's parameters where the composition has them; others (a bias that the golden's network has not) start as
/// their initializer says.
template <class M>
Model<M, cpu::Device> model_with(cpu::Device& on, const reference::Parameters<double>& parameters) {
  Model<M, cpu::Device> model(on);
  initialize(model, 1);
  for (const Parameter& p : typeformer::parameters<M>) {
    const auto found = parameters.find(p.name());
    if (found == parameters.end() || found->second.size() != static_cast<std::size_t>(p.size())) continue;
    model.weights().set(p, std::vector<float>(found->second.data.begin(), found->second.data.end()));
  }
  return model;
}

/// The largest difference of any logit from the golden's, over the largest logit.
template <class M>
double logit_error(const harness::GoldenCase& c) {
  cpu::Device device(2);
  const auto model = model_with<M>(device, c.golden.parameters);
  Logits logits;
  if constexpr (harness::two_stacks<M>)
    logits = forward(model, c.in.source, c.in.target);
  else
    logits = forward(model, c.in.target);
  harness::Results ours;
  harness::split(ours, "logits.", "", logits.values, logits.vocab, c.in.target.lengths);
  double error = 0, largest = 0;
  for (const auto& [name, values] : ours) {
    const auto& expected = c.judge.at(name);
    for (std::size_t i = 0; i < values.size(); ++i) {
      error = std::max(error, std::fabs(values[i] - expected[i]));
      largest = std::max(largest, std::fabs(expected[i]));
    }
  }
  return error / largest;
}

/// A changed composition must miss the golden by far more than the unchanged one may.
template <class M>
void must_show(const harness::GoldenCase& c, const char* what) {
  const double error = logit_error<M>(c);
  std::printf("%-14s %-58s logits off by %8.1e of the largest (allowed: %.0e)\n", std::string(M::name).c_str(), what,
              error, tolerance::tiny_logits_ceiling);
  CHECK_MESSAGE(error > 4 * tolerance::tiny_logits_ceiling, what);
}

}  // namespace features
