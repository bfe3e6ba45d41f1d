// Counts what the passes of small models queue on the CUDA device.
#include "budget.hpp"

#include <stdexcept>
#include <vector>

#include "model/tiny_models.hpp"
#include "typeformer/cuda.cuh"
#include "typeformer/model/transformer.hpp"
#include "typeformer/simt/tally.hpp"
#include "typeformer/train.hpp"
#include "typeformer/typeformer.hpp"

namespace budget {
namespace {

using namespace typeformer;

template <class Work>
Counts count(const Work& work) {
  const simt::Tally tally;
  work();
  Counts counts;
  counts.kernels = tally.kernels();
  counts.products = tally.products();
  counts.copies = tally.copies();
  counts.replays = tally.replays();
  counts.launches = tally.calls("cudaLaunchKernel");
  counts.waits = tally.waits();
  counts.allocations = tally.allocations();
  return counts;
}

template <class M>
Passes passes_of() {
  Passes result;
  result.layers = M::dims.n_layers;
  for (const PlannedStep& step : fusion_plan<M>())
    for (const PlannedOperation& operation : step.operations)
      result.planned[operation.operation] += step.layers.empty() ? 1 : step.layers.size();

  cuda::Device on;
  Model<M, cuda::Device, bf16> model(on);
  Model<M, cuda::Device> master(on);
  initialize(model, 1);
  initialize(master, 1);
  const std::vector<std::int32_t> prompt{3, 1, 4, 1, 5, 9};
  const int length = static_cast<int>(prompt.size());
  State state(model, {.capacity = 32});
  const auto prefill = [&] {
    state.reset();
    extend_and_sample(model, state, prompt, {});
  };
  prefill();
  result.prefill = count(prefill);
  const std::vector<std::int32_t> next{7};
  const auto decode = [&] { extend_and_sample(model, state, next, {}); };
  for (int i = 0; i < 4; ++i) decode();  // the second one with more than 8 positions is recorded
  result.decode = count(decode);

  Gradients<M, cuda::Device> gradients(on);
  AdamW optimizer(master);
  const auto train = [&] { loss_and_gradients(master, Batch{prompt, std::span(&length, 1)}, prompt, gradients); };
  train(), train();
  result.training = count(train);
  result.step = count([&] { optimizer.step(master, gradients); });
  return result;
}

}  // namespace

Passes passes(const std::string& model) {
  if (model == "llama") return passes_of<tiny::Llama>();
  if (model == "gemma3") return passes_of<tiny::Gemma3>();
  throw std::runtime_error("no model " + model);
}

}  // namespace budget
