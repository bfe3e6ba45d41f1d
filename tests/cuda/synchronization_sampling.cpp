// What mutate_synchronization.py runs under the race checker for sampling.cuh: blocks of a few warps, with every step
// of the choice.
#include <cmath>
#include <cstdio>
#include <span>
#include <vector>

#include "arrays.hpp"

int main() {
  using namespace typeformer;
  cuda::Device on;
  constexpr int vocab = 1100, rows = 2;
  std::vector<double> numbers(rows * vocab);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = std::round(20 * std::sin(static_cast<double>(i)));
  const SampleRule rules[rows] = {{.step = 1, .temperature = 2.f, .top_k = 700, .top_p = .9f},
                                  {.step = 2, .temperature = 2.f, .top_k = 700, .top_p = .9f}};
  support::Array<float> logits(on, numbers);
  const Buffer<cuda::Device, SampleRule> rules_there(on, std::span<const SampleRule>(rules));
  Buffer<cuda::Device, std::int32_t> ids(on, rows);
  sample_rows(on, SampleArgs{ids.data(), logits.data(), rules_there.data(), rows, vocab});
  std::int32_t chosen[rows];
  ids.download(std::span<std::int32_t>(chosen));
  for (const std::int32_t id : chosen)
    if (id < 0 || id >= vocab) return std::puts("no id"), 1;
  return 0;
}
