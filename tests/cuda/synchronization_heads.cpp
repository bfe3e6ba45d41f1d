// What mutate_synchronization.py runs under the race checker for the kernels of prepare_heads: statistics of a head and
// of all heads, several groups of lanes, sums of gradients over a block.
#include <cmath>
#include <cstdio>
#include <vector>

#include "arrays.hpp"

namespace {

using namespace typeformer;
using support::Array;

bool run_width(bool all_heads) {
  cuda::Device on;
  constexpr auto form = norm_form(fixed<LayerNorm{}>);
  constexpr int tokens = 30, heads = 6, head_dim = 40, width = 3 * heads * head_dim;
  std::vector<double> numbers(static_cast<std::size_t>(tokens * width));
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = std::sin(static_cast<double>(i));
  Array<float> qkv(on, numbers), prepared(on, numbers.size()), dqkv(on, numbers.size()), channels(on, numbers),
      sums(on, numbers);
  HeadsBackwardArgs<float> b;
  HeadsArgs<float>& a = b.forward;
  a.q = prepared.data();
  a.k = a.q + tokens * heads * head_dim;
  a.v = a.k + tokens * heads * head_dim;
  a.qkv = qkv.data();
  a.q_gain = a.k_gain = a.q_bias = a.k_bias = channels.data();
  a.tokens = tokens;
  a.heads = a.kv_heads = heads;
  a.head_dim = head_dim;
  a.all_heads = all_heads;
  const Rotation<Pairs::halves> rotation{};
  prepare_heads(on, form, rotation, a);
  b.dqkv = dqkv.data();
  b.dq = b.dk = b.dv = qkv.data();
  b.dq_gain = b.dk_gain = b.dq_bias = b.dk_bias = sums.data();
  prepare_heads_backward(on, form, rotation, b);
  for (const double number : prepared.download())
    if (!std::isfinite(number)) return false;
  for (const double number : dqkv.download())
    if (!std::isfinite(number)) return false;
  return true;
}

}  // namespace

int main() {
  if (run_width(false) && run_width(true)) return 0;
  std::puts("not finite");
  return 1;
}
