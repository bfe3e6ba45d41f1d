/// Runs a composition on a device with the judge's parameters and collects what the judge computes too. Knows the
/// judge's data, not the judge.
#pragma once
#include <algorithm>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "reference/config.hpp"
#include "reference/tensor.hpp"
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
template <class M, class W = float, class Device>
Model<M, Device, W> model_of(Device& on, const reference::Parameters<double>& parameters) {
  Model<M, Device, W> model(on);
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
inline void split(Results& results, const std::string& before, const std::string& after,
                  const std::vector<float>& numbers, int width, const std::vector<int>& lengths) {
  const float* data = numbers.data();
  for (std::size_t b = 0; b < lengths.size(); ++b) {
    const std::size_t count = static_cast<std::size_t>(lengths[b]) * static_cast<std::size_t>(width);
    results[before + std::to_string(b) + after].assign(data, data + count);
    data += count;
  }
}

/// Collects the residual stream before and after every layer.
template <class Device>
struct Collector {
  Device& on;
  Results& results;
  const Inputs& in;
  int n_layers, encoder_layers;
  template <class A>
  void operator()(const Observed<A>& seen) const {
    const bool encoder = seen.stack == "encoder.";
    const auto& lengths = encoder ? in.source.lengths : in.target.lengths;
    const int last = encoder ? encoder_layers : n_layers;
    const auto put = [&](const std::string& before, const std::string& after) {
      const auto numbers = typeformer::detail::to_host(on, seen.data, seen.rows * seen.width);
      split(results, std::string(seen.stack) + before, after, numbers, seen.width, lengths);
    };
    if (seen.name == "embedding") put("hidden.", ".0");
    if (seen.name == "final_norm") put("hidden.", "." + std::to_string(last));
    if (seen.name == "hidden" && seen.layer + 1 < last) put("hidden.", "." + std::to_string(seen.layer + 1));
    if (seen.name == "hidden" && seen.layer + 1 == last) put("hidden_before_norm.", "");
  }
};

template <class M>
constexpr bool two_stacks = EncoderDecoderComposition<M>;

/// Everything that a golden file has of a network but the greedy steps.
template <class M, class Device, class W>
Results run(const Model<M, Device, W>& model, const Inputs& in, const typeformer::LossOptions& options = {}) {
  Results results;
  Gradients<M, Device> gradients(model.device());
  float value = 0;
  Logits logits;
  if constexpr (two_stacks<M>) {
    const Collector<Device> collect{model.device(), results, in, M::Decoder::dims.n_layers, M::Encoder::dims.n_layers};
    logits = forward(model, in.source, in.target, collect);
    value = loss_and_gradients(model, in.source, in.target, in.labels, gradients, options);
  } else {
    logits = forward(model, in.target, Collector<Device>{model.device(), results, in, M::dims.n_layers, 0});
    value = loss_and_gradients(model, in.target, in.labels, gradients, options);
  }
  split(results, "logits.", "", logits.values, logits.vocab, in.target.lengths);
  results["loss"] = {value};
  for (const Parameter& p : typeformer::parameters<M>) {
    const auto numbers = gradients.get(p);
    results["grad." + p.name()].assign(numbers.begin(), numbers.end());
  }
  return results;
}

inline std::int32_t best(std::span<const float> logits) {
  return static_cast<std::int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}
inline std::vector<std::int32_t> ids_of(const std::vector<int>& ids) { return {ids.begin(), ids.end()}; }

/// A state that has read what comes before the first target token.
template <class M, class Device, class W>
auto state_for(const Model<M, Device, W>& model, const reference::Sequence& sequence, int capacity) {
  if constexpr (two_stacks<M>) {
    EncoderDecoderState state(model, {.capacity = capacity, .chunk = 7});
    const auto source = ids_of(sequence.encoder_ids);
    const int length = static_cast<int>(source.size());
    encode(model, state, Batch{source, std::span(&length, 1)});
    return state;
  } else {
    return State(model, {.capacity = capacity, .chunk = 7});
  }
}

/// Logits after each of `steps` greedy choices, the first after the whole prompt; the choices go to `ids`. With `given`
/// tokens the model reads those instead of its own choices.
template <class M, class Device, class W>
std::vector<float> decode(const Model<M, Device, W>& model, const reference::Sequence& sequence, std::size_t steps,
                          std::vector<std::int32_t>& ids, std::span<const std::int32_t> given = {}) {
  std::vector<std::int32_t> next = ids_of(sequence.ids);
  auto state = state_for(model, sequence, static_cast<int>(next.size() + steps));
  std::vector<float> rows;
  for (std::size_t step = 0; step < steps; ++step) {
    const int count = static_cast<int>(next.size());
    const Logits logits = extend(model, state, Batch{next, std::span(&count, 1)});
    rows.insert(rows.end(), logits.values.begin(), logits.values.end());
    ids.push_back(best(logits[0]));
    next = {given.empty() ? ids.back() : given[step]};
  }
  return rows;
}

/// The tokens that extend_and_sample draws after each of `steps` passes: of the whole sequence, then of a given token.
template <class M, class Device, class W>
std::vector<std::int32_t> sampled(const Model<M, Device, W>& model, const reference::Sequence& sequence,
                                  std::span<const std::int32_t> given, const SamplingOptions& options) {
  std::vector<std::int32_t> next = ids_of(sequence.ids), ids;
  auto state = state_for(model, sequence, static_cast<int>(next.size() + given.size()));
  for (std::size_t step = 0; step < given.size(); ++step) {
    const int count = static_cast<int>(next.size());
    const SampleRule rule = sample_rule(options, step);
    ids.push_back(extend_and_sample(model, state, Batch{next, std::span(&count, 1)}, std::span(&rule, 1))[0]);
    next = {given[step]};
  }
  return ids;
}

}  // namespace harness
