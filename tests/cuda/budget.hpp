/// What a model's passes ask of the GPU: kernels, products, copies.
#pragma once
#include <cstdint>
#include <map>
#include <string>

namespace budget {

/// What was queued, and what was called for it.
struct Counts {
  std::map<std::string, std::uint64_t> kernels;  ///< by name, replayed ones too
  std::uint64_t products = 0;                    ///< of cuBLASLt
  std::uint64_t copies = 0;
  std::uint64_t replays = 0;      ///< launches of graphs
  std::uint64_t launches = 0;     ///< calls that launch a kernel
  std::uint64_t waits = 0;        ///< calls that make the host wait
  std::uint64_t allocations = 0;  ///< of device memory
  std::uint64_t all_kernels() const {
    std::uint64_t sum = 0;
    for (const auto& [name, count] : kernels) sum += count;
    return sum;
  }
};

/// The passes of tests/golden's tiny models "llama" and "gemma3", in bf16, once everything is in place.
struct Passes {
  int layers = 0;
  std::map<std::string, std::uint64_t> planned;  ///< operations of a forward pass by describe's plan
  Counts prefill, decode, training, step;        ///< `training`: forward, loss, gradients; `step`: AdamW
};
Passes passes(const std::string& model);

/// Bytes of device memory: what describe says of the model, and what the passes asked for.
struct Memory {
  std::int64_t planned_pass = 0, pass = 0;          ///< the first prompt that a state reads
  std::int64_t planned_training = 0, training = 0;  ///< loss_and_gradients, once the device has its own workspace
  std::int64_t lists = 0;  ///< at most, in each: ids, positions, segments, labels, losses, a token
};
Memory memory(const std::string& model);

}  // namespace budget
