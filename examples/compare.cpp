// One configuration against another: Base against the same with LayerNorm, in alternating runs; medians as a table on
// the error stream and as JSON on the output stream.
//
//   compare [runs] [tokens]
//
// test: 3 32
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <typeformer/cpu.hpp>
#include <vector>

namespace tf = typeformer;

using Base =
    tf::Transformer<tf::Dims{.vocab = 1024, .d_model = 256, .n_layers = 4, .d_ff = 688, .max_seq = 1024}, tf::RMSNorm{},
                    tf::SwiGLU{}, tf::RoPE{}, tf::GQA{.heads = 4, .kv_heads = 2}, tf::PreNorm{}, tf::Name{"base"}>;
using Other = Base::with<tf::LayerNorm{}>::with<tf::Name{"with LayerNorm"}>;

/// Seconds of reading a prompt and of a step after it, one entry per run.
template <class M>
struct Contestant {
  tf::Model<M, tf::cpu::Device> model;
  std::vector<double> prefill{}, decode{};

  explicit Contestant(tf::cpu::Device& device) : model(device) { tf::initialize(model, 1); }
  void run(const std::vector<std::int32_t>& prompt) {
    tf::State state(model, {.capacity = static_cast<int>(prompt.size()) + 1});
    prefill.push_back(seconds([&] { tf::extend(model, state, prompt); }));
    decode.push_back(seconds([&] { tf::extend(model, state, std::span(prompt).first(1)); }));
  }
  template <class F>
  static double seconds(F&& f) {
    const auto start = std::chrono::steady_clock::now();
    f();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

template <class M>
void report(const Contestant<M>& c, std::size_t tokens, bool last) {
  const double prefill = static_cast<double>(tokens) / median(c.prefill), decode = 1 / median(c.decode);
  std::fprintf(stderr, "%-16s %12lld parameters %10.0f prefill tokens/s %8.0f decode tokens/s\n",
               std::string(M::name).c_str(), static_cast<long long>(M::parameter_count), prefill, decode);
  std::printf(
      "{\"name\": \"%s\", \"parameters\": %lld, \"prefill_tokens_per_second\": %.1f, "
      "\"decode_tokens_per_second\": %.1f}%s\n",
      std::string(M::name).c_str(), static_cast<long long>(M::parameter_count), prefill, decode, last ? "]" : ",");
}

int main(int argc, char** argv) try {
  const int runs = argc > 1 ? std::atoi(argv[1]) : 11, tokens = argc > 2 ? std::atoi(argv[2]) : 128;
  if (runs < 1 || tokens < 1) return std::fputs("usage: compare [runs] [tokens]\n", stderr), 2;
  const std::vector<std::int32_t> prompt(static_cast<std::size_t>(tokens), 7);
  tf::cpu::Device device;
  Contestant<Base> base(device);
  Contestant<Other> other(device);
  base.run(prompt), other.run(prompt);  // to warm up
  base.prefill.clear(), base.decode.clear(), other.prefill.clear(), other.decode.clear();
  for (int i = 0; i < runs; ++i) {  // what else the machine does meets both alike
    base.run(prompt);
    other.run(prompt);
  }
  std::printf("[");
  report(base, prompt.size(), false);
  report(other, prompt.size(), true);
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
