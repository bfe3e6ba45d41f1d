/// Runs a composition on the CPU device with the judge's parameters and collects what the judge computes too.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "reference.hpp"
#include "typeformer/cpu.hpp"
#include "typeformer/model/encoder_decoder.hpp"
#include "typeformer/typeformer.hpp"

namespace harness {
using namespace typeformer;

/// A ragged batch that owns its ids.
struct OwnedBatch {
  std::vector<std::int32_t> ids;
  std::vector<int> lengths;
  std::vector<MaskData> mask_data;
  operator Batch() const { return {ids, lengths, mask_data}; }
};

struct Inputs {
  OwnedBatch target, source;
  std::vector<std::int32_t> labels;
};
inline Inputs inputs_of(const reference::Batch& batch) {
  Inputs in;
  for (const auto& sequence : batch) {
    in.target.ids.insert(in.target.ids.end(), sequence.ids.begin(), sequence.ids.end());
    in.target.lengths.push_back(static_cast<int>(sequence.ids.size()));
    in.target.mask_data.push_back({.prefix = static_cast<int>(sequence.prefix)});
    in.source.ids.insert(in.source.ids.end(), sequence.encoder_ids.begin(), sequence.encoder_ids.end());
    in.source.lengths.push_back(static_cast<int>(sequence.encoder_ids.size()));
    in.labels.insert(in.labels.end(), sequence.labels.begin(), sequence.labels.end());
  }
  return in;
}

/// The judge's parameters, by canonical name, as a model's weights. Throws when a name or a size differs.
template <class M, class W = float>
Model<M, cpu::Device, W> model_of(cpu::Device& on, const reference::Parameters<double>& parameters) {
  Model<M, cpu::Device, W> model(on);
  std::size_t used = 0;
  for (const Parameter& p : typeformer::parameters<M>) {
    const auto& tensor = parameters.at(p.name());
    model.weights().set(p, std::vector<float>(tensor.data.begin(), tensor.data.end()));
    if (static_cast<std::size_t>(p.size()) != tensor.size())
      throw Error("model_of", p.name(), std::to_string(p.size()), std::to_string(tensor.size()));
    ++used;
  }
  if (used != parameters.size())
    throw Error("model_of", "parameters", std::to_string(used), std::to_string(parameters.size()));
  return model;
}

/// What a network computed, by the names of golden.safetensors: "hidden.{b}.{l}", "logits.{b}", "loss", and gradients
/// by canonical name ("grad.layers.0...").
using Results = std::map<std::string, std::vector<double>>;

/// Rows of a ragged [T, width] matrix to one vector per sequence.
inline void split(Results& results, const std::string& before, const std::string& after, const float* data, int width,
                  const std::vector<int>& lengths) {
  for (std::size_t b = 0; b < lengths.size(); ++b) {
    const std::size_t count = static_cast<std::size_t>(lengths[b]) * static_cast<std::size_t>(width);
    results[before + std::to_string(b) + after].assign(data, data + count);
    data += count;
  }
}

/// Collects the residual stream before and after every layer.
struct Collector {
  Results& results;
  const Inputs& in;
  int n_layers, encoder_layers;
  void operator()(const Observed& seen) const {
    const bool encoder = seen.stack == "encoder.";
    const auto& lengths = encoder ? in.source.lengths : in.target.lengths;
    const int last = encoder ? encoder_layers : n_layers;
    const std::string stack(seen.stack);
    if (seen.name == "embedding") split(results, stack + "hidden.", ".0", seen.data, seen.width, lengths);
    if (seen.name == "final_norm")
      split(results, stack + "hidden.", "." + std::to_string(last), seen.data, seen.width, lengths);
    if (seen.name == "hidden" && seen.layer + 1 < last)
      split(results, stack + "hidden.", "." + std::to_string(seen.layer + 1), seen.data, seen.width, lengths);
    if (seen.name == "hidden" && seen.layer + 1 == last)
      split(results, stack + "hidden_before_norm.", "", seen.data, seen.width, lengths);
  }
};

template <class M>
constexpr bool two_stacks = EncoderDecoderComposition<M>;

template <class M, class W>
Results run(const Model<M, cpu::Device, W>& model, const Inputs& in, const typeformer::LossOptions& options = {}) {
  Results results;
  Gradients<M, cpu::Device> gradients(model.device());
  float value = 0;
  Logits logits;
  if constexpr (two_stacks<M>) {
    const Collector collect{results, in, M::Decoder::dims.n_layers, M::Encoder::dims.n_layers};
    logits = forward(model, in.source, in.target, collect);
    value = loss_and_gradients(model, in.source, in.target, in.labels, gradients, options);
  } else {
    logits = forward(model, in.target, Collector{results, in, M::dims.n_layers, 0});
    value = loss_and_gradients(model, in.target, in.labels, gradients, options);
  }
  split(results, "logits.", "", logits.values.data(), logits.vocab, in.target.lengths);
  results["loss"] = {value};
  for (const Parameter& p : typeformer::parameters<M>) {
    const auto numbers = gradients.get(p);
    results["grad." + p.name()].assign(numbers.begin(), numbers.end());
  }
  return results;
}

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
