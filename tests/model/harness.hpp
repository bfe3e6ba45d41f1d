/// The judge's results by the names of the runner's.
#pragma once
#include <string>

#include "model/runner.hpp"
#include "reference.hpp"
#include "typeformer/cpu.hpp"

namespace harness {

/// The judge's results under the same names; T = float: the naive results of our own precision.
template <class T = double>
Results judged(const reference::Config& config, const reference::Parameters<double>& parameters,
               const reference::Batch& batch, const reference::LossOptions& options = {}) {
  Results results;
  const auto all = reference::gradients(config, reference::convert<T>(parameters), batch, options);
  const auto put = [&](const std::string& name, const auto& tensor) {
    results[name].assign(tensor.data.begin(), tensor.data.end());
  };
  const auto trace = [&](const std::string& stack, std::size_t b, const auto& t) {
    const std::size_t n = t.hidden.size() - 1;
    const std::string number = std::to_string(b);
    for (std::size_t l = 0; l < n; ++l) put(stack + "hidden." + number + "." + std::to_string(l), t.hidden[l]);
    put(stack + "hidden_before_norm." + number, t.hidden[n]);
    put(stack + "hidden." + number + "." + std::to_string(n), t.last);
  };
  for (std::size_t b = 0; b < batch.size(); ++b) {
    trace(config.encoder ? "decoder." : "", b, all.activations[b].stack);
    if (config.encoder) trace("encoder.", b, all.activations[b].encoder);
    put("logits." + std::to_string(b), all.activations[b].logits);
  }
  results["loss"] = {static_cast<double>(all.loss)};
  for (const auto& [name, tensor] : all.parameters) put("grad." + name, tensor);
  return results;
}

}  // namespace harness
