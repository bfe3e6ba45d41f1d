/// A user's program: what every way to take in the library must be able to build and run.
#include <typeformer/cpu.hpp>
#include <typeformer/typeformer.hpp>

#include <atomic>
#include <cstdint>
#include <cstdio>

// The library must never choose a CPU for its user, and must compile for the one that the user named.
#if defined(CONSUMER_NAMED_AVX2) != defined(__AVX2__)
#error "compiled for another CPU than the consumer named"
#endif

namespace tf = typeformer;
using Tiny =
    tf::Transformer<tf::Dims{.vocab = 11, .d_model = 8, .n_layers = 2, .d_ff = 12, .max_seq = 16}, tf::RMSNorm{},
                    tf::SwiGLU{}, tf::RoPE{}, tf::GQA{.heads = 4, .kv_heads = 2}, tf::PreNorm{}, tf::TiedEmbeddings{}>;

// Per layer: q and output 8 x 8, k and v 4 x 8, gate, up and down 12 x 8, two norms of 8.
static_assert(Tiny::parameter_count == 11 * 8 + 2 * (2 * 8 * 8 + 2 * 4 * 8 + 3 * 12 * 8 + 2 * 8) + 8);

int main() {
  tf::cpu::Device device(2);
  std::atomic<std::int64_t> sum = 0;
  device.parallel(1000, 1, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) sum += i;
  });
  std::printf("%lld parameters, sum %lld on %d threads\n", static_cast<long long>(Tiny::parameter_count),
              static_cast<long long>(sum), device.threads());
  return sum == 499500 && device.threads() == 2 ? 0 : 1;
}
