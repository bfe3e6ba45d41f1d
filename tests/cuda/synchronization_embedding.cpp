// What mutate_synchronization.py runs under the race checker for embedding.cuh: tokens that share their indices, in two
// tiles.
#include <cmath>
#include <cstdio>
#include <span>
#include <vector>

#include "arrays.hpp"

int main() {
  using namespace typeformer;
  constexpr std::size_t tokens = 1030, width = 8, rows = 3;
  cuda::Device on;
  std::vector<std::int32_t> indices(tokens);
  std::vector<double> dy(tokens * width), sums(rows * width);
  for (std::size_t t = 0; t < tokens; ++t) {
    indices[t] = static_cast<std::int32_t>(t * t % rows);
    for (std::size_t i = 0; i < width; ++i) {
      dy[t * width + i] = static_cast<double>((t + i) % 7);
      sums[static_cast<std::size_t>(indices[t]) * width + i] += dy[t * width + i];
    }
  }
  support::Array<float> gradient(on, dy), table(on, std::vector<double>(rows * width, 0));
  const Buffer<cuda::Device, std::int32_t> index(on, std::span<const std::int32_t>(indices));
  GatherBackwardArgs<float> a;
  a.dtable = table.data();
  a.dy = gradient.data();
  a.index = index.data();
  a.tokens = tokens;
  a.width = width;
  gather_rows_backward(on, a);
  if (table.download() == sums) return 0;
  std::puts("wrong sums");
  return 1;
}
