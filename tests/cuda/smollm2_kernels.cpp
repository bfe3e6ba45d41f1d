// The passes of SmolLM2-135M on both devices, instantiated for the tests.
#include "smollm2.hpp"

#include "model/runner.hpp"
#include "typeformer/cpu.hpp"
#include "typeformer/cuda.cuh"
#include "typeformer/family/llama.hpp"
#include "typeformer/io.hpp"

namespace smollm2 {
namespace {

template <class Device>
Answer answer_on(const std::string& path, const std::vector<std::int32_t>& prompt, std::size_t steps) {
  using namespace typeformer;
  Device on;
  const auto model = load<SmolLM2_135M>(on, path);
  Answer result;
  reference::Sequence sequence;
  sequence.ids = {prompt.begin(), prompt.end()};
  result.logits = harness::decode(model, sequence, steps, result.ids);
  return result;
}

}  // namespace

Answer answer(const std::string& device, const std::string& path, const std::vector<std::int32_t>& prompt,
              std::size_t steps) {
  if (device == "cuda") return answer_on<typeformer::cuda::Device>(path, prompt, steps);
  return answer_on<typeformer::cpu::Device>(path, prompt, steps);
}

}  // namespace smollm2
