// A small model whose life is interrupted by failures of CUDA.
#include "failure.hpp"

#include <algorithm>
#include <functional>
#include <memory>

#include "model/runner.hpp"
#include "typeformer/cuda.cuh"
#include "typeformer/simt/injection.hpp"
#include "typeformer/simt/tally.hpp"
#include "typeformer/train.hpp"
#include "typeformer/typeformer.hpp"

namespace failure {
namespace {

using namespace typeformer;

/// Learned positions, a norm with a bias, windows of its own in every second layer: one of each kind of operation.
using M = Transformer<Dims{.vocab = 21, .d_model = 16, .n_layers = 2, .d_ff = 24, .max_seq = 16}, LayerNorm{}, SwiGLU{},
                      LearnedPositions{}, GQA{.heads = 2, .kv_heads = 1, .head_dim = 8}, PreNorm{}, Biases{},
                      FinalSoftcap{4.f}>;
using Weights = Model<M, cuda::Device, bf16>;
using Life = State<M, cuda::Device, bf16>;

const std::vector<std::int32_t> prompt{3, 1, 4, 1, 5, 9, 2};

/// Everything that exists before the phase begins.
struct World {
  cuda::Device on;
  std::unique_ptr<Weights> model;
  std::unique_ptr<Life> state;
  std::unique_ptr<Model<M, cuda::Device>> master;
  std::unique_ptr<Gradients<M, cuda::Device>> gradients;
  std::unique_ptr<AdamW<M, cuda::Device>> optimizer;
};
using Numbers = std::vector<float>;

void load(World& world) {
  world.model = std::make_unique<Weights>(world.on);
  initialize(*world.model, 5);
}
/// The phase's numbers, the same whenever it begins anew.
using Phase = std::function<Numbers(World&)>;

Numbers load_phase(World& world) {
  load(world);
  return world.model->weights().get(parameters<M>[3]);
}
Numbers prefill_phase(World& world) { return extend(*world.model, *world.state, prompt); }
/// Four steps: direct, recorded, replayed twice.
Numbers decode_phase(World& world) {
  Numbers numbers;
  for (const std::int32_t id : {7, 8, 9, 10}) numbers = extend(*world.model, *world.state, std::vector{id});
  return numbers;
}
Numbers training_phase(World& world) {
  const int length = static_cast<int>(prompt.size());
  const float value = loss_and_gradients(*world.master, Batch{prompt, std::span(&length, 1)}, prompt, *world.gradients);
  world.optimizer->step(*world.master, *world.gradients,
                        {.gradient_scale = clip_scale(gradient_norm(world.on, *world.gradients), 1.f)});
  Numbers numbers = world.master->weights().get(parameters<M>[2]);
  numbers.push_back(value);
  return numbers;
}

/// Undoes what the phase did.
void rewind(const std::string& phase, World& world) {
  if (phase == "prefill") world.state->reset();
  if (phase == "decode") world.state->truncate(0, static_cast<int>(prompt.size()));
  if (phase != "training") return;
  initialize(*world.master, 5);
  world.optimizer->set_steps(0);
  world.optimizer->first_moments().zero();
  world.optimizer->second_moments().zero();
  world.gradients->zero();
}

void add(std::vector<std::string>& list, const std::string& text) {
  if (std::find(list.begin(), list.end(), text) == list.end()) list.push_back(text);
}

/// A world in which the phase may begin.
std::unique_ptr<World> world_for(const std::string& phase) {
  auto world = std::make_unique<World>();
  if (phase == "load") return world;
  load(*world);
  world->state = std::make_unique<Life>(*world->model, StateOptions{.capacity = 16});
  if (phase == "decode") prefill_phase(*world);
  if (phase != "training") return world;
  world->master = std::make_unique<Model<M, cuda::Device>>(world->on);
  world->gradients = std::make_unique<Gradients<M, cuda::Device>>(world->on);
  world->optimizer = std::make_unique<AdamW<M, cuda::Device>>(*world->master);
  initialize(*world->master, 5);
  return world;
}

/// Runs the phase with its nth call failed, and then once more.
void fail_one(const std::string& name, const Phase& phase, std::uint64_t nth, bool sticky, const Numbers& expected,
              Report& report) {
  const auto alive = simt::live_objects();
  {
    const auto world = world_for(name);
    std::string failed;
    {
      const simt::FailCall fail(nth, sticky ? cudaErrorIllegalAddress : cudaErrorUnknown);
      bool thrown = false;
      try {
        phase(*world);
      } catch (const Error& error) {
        thrown = true;
        add(report.errors, error.what());
      }
      failed = fail.name();
      add(report.functions, failed);
      const bool cleaning = failed.starts_with("cudaFree") || failed.find("Destroy") != std::string::npos;
      if (!thrown && (!cleaning || sticky)) add(report.wrong, failed + " failed without an Error");
    }
    if (!sticky) {  // after one of those a GPU's process has to begin anew
      try {
        rewind(name, *world);
        if (phase(*world) != expected) add(report.wrong, "another result after " + failed + " failed");
      } catch (const Error& error) {
        add(report.wrong, "after " + failed + " failed: " + error.what());
      }
    }
  }
  if (simt::live_objects() != alive)
    add(report.wrong, "a leak after call " + std::to_string(nth) + ": " + simt::live_objects().text());
}

}  // namespace

Report fail_calls(const std::string& name, bool sticky, std::uint64_t step) {
  const Phase phase = name == "load"      ? load_phase
                      : name == "prefill" ? prefill_phase
                      : name == "decode"  ? decode_phase
                                          : training_phase;
  simt::options().threads = 1;      // these kernels are too small to share,
  const simt::DeviceWork readable;  // and hiding memory from the host takes longer than they run
  Report report;
  Numbers expected;
  {
    const auto world = world_for(name);
    const simt::Tally tally;
    expected = phase(*world);
    report.calls = tally.calls();
  }
  for (std::uint64_t nth = 1; nth <= report.calls; nth += step) fail_one(name, phase, nth, sticky, expected, report);
  return report;
}

}  // namespace failure
