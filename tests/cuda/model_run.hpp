/// Instantiates the passes of a model on the CUDA device. The program of a family names its models.
#pragma once
#include <stdexcept>

#include "model.hpp"
#include "model/runner.hpp"
#include "model/tiny_models.hpp"
#include "typeformer/cuda.cuh"

namespace models::detail {
using namespace typeformer;
using support::Number;

/// Calls body with a model of composition M and weights of the type that `number` names.
template <class M, class Body>
auto with_model(Number number, const reference::Parameters<double>& parameters, Body&& body) {
  cuda::Device on;
  if (number == Number::f32) return body(harness::model_of<M, float>(on, parameters));
  return body(harness::model_of<M, bf16>(on, parameters));
}

/// run of model.hpp, for the one of Models that has the name.
template <class... Models>
harness::Results run(const std::string& name, Number number, const reference::Parameters<double>& parameters,
                     const reference::Batch& batch) {
  harness::Results results;
  const auto one = [&]<class M>() {
    if (M::name != name) return false;
    results = with_model<M>(number, parameters,
                            [&](const auto& model) { return harness::run(model, harness::inputs_of(batch)); });
    return true;
  };
  if (!(one.template operator()<Models>() || ...)) throw std::runtime_error("no model " + name);
  return results;
}

/// decode of model.hpp, likewise.
template <class... Models>
Steps decode(const std::string& name, Number number, const reference::Parameters<double>& parameters,
             const reference::Sequence& sequence, std::size_t steps, const std::vector<std::int32_t>& given) {
  Steps result;
  const auto one = [&]<class M>() {
    if (M::name != name) return false;
    with_model<M>(number, parameters, [&](const auto& model) {
      result.logits = harness::decode(model, sequence, steps, result.ids, given);
      result.sampled = harness::sampled(model, sequence, given.empty() ? result.ids : given, sampling_options());
    });
    return true;
  };
  if (!(one.template operator()<Models>() || ...)) throw std::runtime_error("no model " + name);
  return result;
}

}  // namespace models::detail
