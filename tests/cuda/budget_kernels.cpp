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

/// Counts what is asked of it.
struct Asked {
  std::int64_t bytes = 0;
  static void* allocate(std::size_t bytes, cudaStream_t, void* user) {
    static_cast<Asked*>(user)->bytes += static_cast<std::int64_t>(bytes);
    void* memory = nullptr;
    return cudaMalloc(&memory, bytes) == cudaSuccess ? memory : nullptr;
  }
  static void release(void* memory, cudaStream_t, void*) { static_cast<void>(cudaFree(memory)); }
};

template <class M>
Memory memory_of() {
  Memory result;
  Asked asked;
  cuda::Device on({.memory = {&Asked::allocate, &Asked::release, &asked}});
  const Model<M, cuda::Device, bf16> model(on);
  const std::vector<std::int32_t> prompt{3, 1, 4, 1, 5, 9};
  const int length = static_cast<int>(prompt.size());
  const StackCosts planned = costs<M>({.context = length,
                                       .weight_bytes = 2,
                                       .cache_bytes = 2,
                                       .activation_bytes = 2,
                                       .loss_logits = cuda::Device::loss_logits});
  result.planned_pass = planned.pass_memory;
  result.planned_training = planned.training_memory;
  result.lists = 16 * 256 + 64 * length;
  const auto counted = [&asked](const auto& work) {
    const std::int64_t before = asked.bytes;
    work();
    return asked.bytes - before;
  };
  State warm(model, {.capacity = 32}), state(model, {.capacity = 32});
  extend_and_sample(model, warm, prompt, {});
  result.pass = counted([&] { extend_and_sample(model, state, prompt, {}); });
  Gradients<M, cuda::Device> gradients(on);
  const auto train = [&] { loss_and_gradients(model, Batch{prompt, std::span(&length, 1)}, prompt, gradients); };
  train();
  result.training = counted(train);
  return result;
}

template <class Run>
auto with_model(const std::string& model, const Run& run) {
  if (model == "llama") return run.template operator()<tiny::Llama>();
  if (model == "gemma3") return run.template operator()<tiny::Gemma3>();
  throw std::runtime_error("no model " + model);
}

}  // namespace

Passes passes(const std::string& model) {
  return with_model(model, []<class M>() { return passes_of<M>(); });
}
Memory memory(const std::string& model) {
  return with_model(model, []<class M>() { return memory_of<M>(); });
}

}  // namespace budget
