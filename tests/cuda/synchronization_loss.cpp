// What mutate_synchronization.py runs under the race checker for loss.cuh: rows of several warps, one of them ignored.
#include <cmath>
#include <cstdio>
#include <span>
#include <vector>

#include "arrays.hpp"

int main() {
  using namespace typeformer;
  constexpr std::size_t rows = 3, vocab = 301;
  cuda::Device on;
  std::vector<double> numbers(rows * vocab);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = std::sin(static_cast<double>(i));
  const std::vector<std::int32_t> chosen{4, -1, 300};
  support::Array<float> logits(on, numbers), loss(on, rows);
  const Buffer<cuda::Device, std::int32_t> labels(on, std::span<const std::int32_t>(chosen));
  CrossEntropyArgs<float> a;
  a.logits = logits.data();
  a.labels = labels.data();
  a.loss = loss.data();
  a.rows = rows;
  a.vocab = vocab;
  a.smoothing = .1f;
  a.z_loss = .01f;
  a.gradient = true;
  cross_entropy(on, a);
  for (const double d : logits.download())
    if (!std::isfinite(d)) {
      std::puts("not finite");
      return 1;
    }
  return 0;
}
