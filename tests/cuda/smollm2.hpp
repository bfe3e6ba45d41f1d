/// A real model on the CUDA device and on the CPU, for the tests.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace smollm2 {

/// Greedy continuation of a prompt, and every step's logits.
struct Answer {
  std::vector<std::int32_t> ids;
  std::vector<float> logits;
};
/// SmolLM2-135M from a GGUF file, in f32. `device`: "cpu" or "cuda".
Answer answer(const std::string& device, const std::string& path, const std::vector<std::int32_t>& prompt,
              std::size_t steps);

}  // namespace smollm2
