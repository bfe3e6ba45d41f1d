// A user's own norm, activation, position and mask within the library's kernels, instantiated for the tests.
#include "own_policies.hpp"

#include "../../examples/own_policies.hpp"
#include "model/runner.hpp"
#include "typeformer/cpu.hpp"
#include "typeformer/cuda.cuh"

namespace own_policies {
namespace {

using namespace typeformer;
using M =
    Transformer<Dims{.vocab = 31, .d_model = 24, .n_layers = 2, .d_ff = 48, .max_seq = 64},
                mine::DynamicTanh{.alpha = .8f}, mine::Softplus{}, mine::LogDistance{},
                GQA{.heads = 4, .kv_heads = 2, .head_dim = 6}, PreNorm{}, mine::Strided{.window = 3, .stride = 5}>;

template <class W, class Device>
harness::Results run_on(Device& on) {
  Model<M, Device, W> model(on);
  initialize(model, 1);
  for (const Parameter& p : parameters<M>) {  // far from the start, so that every gradient is large
    auto values = model.weights().get(p);
    for (float& value : values) value *= p.matrix ? 16.f : 1.2f;
    model.weights().set(p, values);
  }
  harness::Inputs in;
  for (int i = 0; i < static_cast<int>(tokens); ++i) {
    in.target.ids.push_back(i * i % 31);
    in.labels.push_back((i + 1) * (i + 1) % 31);
  }
  in.target.lengths = {23, 17};
  auto results = harness::run(model, in);
  std::vector<std::int32_t> chosen;
  const std::vector<std::int32_t> given{1, 5, 2, 6, 3, 7, 4, 8};
  reference::Sequence prompt;
  prompt.ids = {3, 1, 4, 1, 5};
  const auto steps = harness::decode(model, prompt, given.size(), chosen, given);
  results["decode"].assign(steps.begin(), steps.end());
  return results;
}

}  // namespace

std::map<std::string, std::vector<double>> run(const std::string& device, support::Number number) {
  const bool single = number == support::Number::f32;
  if (device == "cpu") {
    cpu::Device on(1);
    return single ? run_on<float>(on) : run_on<bf16>(on);
  }
  cuda::Device on;
  return single ? run_on<float>(on) : run_on<bf16>(on);
}

}  // namespace own_policies
