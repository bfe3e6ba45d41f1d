/// Whole models on the CUDA device, for the tests: the tiny models of tests/golden by name.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "numbers.hpp"
#include "reference/config.hpp"
#include "reference/tensor.hpp"
#include "typeformer/model/sampling.hpp"

namespace models {

/// Hidden states, logits, loss and gradients by the names of golden.safetensors (see harness::Results).
std::map<std::string, std::vector<double>> run(const std::string& model, support::Number number,
                                               const reference::Parameters<double>& parameters,
                                               const reference::Batch& batch);

/// Greedy decoding with a cache: what was chosen, and the logits of every step.
struct Steps {
  std::vector<std::int32_t> ids;
  std::vector<float> logits;
  std::vector<std::int32_t> sampled;  ///< with sampling_options(), by passes of their own that read the same tokens
};
inline typeformer::SamplingOptions sampling_options() {
  return {.temperature = 2.f, .top_k = 40, .top_p = .9f, .seed = 5};
}
/// After the whole of a sequence. With `given` tokens the model reads those instead of its own choices.
Steps decode(const std::string& model, support::Number number, const reference::Parameters<double>& parameters,
             const reference::Sequence& sequence, std::size_t steps, const std::vector<std::int32_t>& given);

}  // namespace models
