// Times every operation of the CUDA device: a JSON object per line, with the bytes and FLOPs that any program must move
// and make for it (each input read once, each output written once), and the time that these take at least on known
// GPUs. Arrays hold normal numbers, and are in no cache when an operation begins.
//
//   operations [--small] [--bounds]
//
// Compiled by nvcc (-x cu) for a GPU, or with TYPEFORMER_CUDA_ON_HOST for the host, where --small is for and times mean
// nothing. --bounds: prints the bounds and runs nothing. Shapes are those of Llama 3.1 8B's layers.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "typeformer/cuda.cuh"
#include "typeformer/typeformer.hpp"

namespace {

namespace tf = typeformer;
using tf::bf16;
using Device = tf::cuda::Device;

#if defined(TYPEFORMER_CUDA_ON_HOST)
constexpr bool on_host = true;
#else
constexpr bool on_host = false;
#endif

/// Bytes per second of memory, FLOPs per second of bf16 products: NVIDIA's data sheets.
struct Peak {
  const char* gpu;
  double bytes, flops;
};
constexpr Peak peaks[] = {{"A100", 2.04e12, 312e12}, {"H100", 3.35e12, 989e12}, {"H200", 4.8e12, 989e12}};

struct Shape {
  std::int64_t tokens, context;  // of a prompt, and before a decoded token
  int sequences;                 // that decode together
  int d_model, heads, kv_heads, head_dim, d_ff, vocab;
};
constexpr Shape large{4096, 8192, 8, 4096, 32, 8, 128, 14336, 128256}, small{40, 70, 2, 64, 4, 2, 16, 96, 200};

/// What an operation must read, write and compute, however it is programmed.
struct Work {
  double bytes, flops;
};

enum class Start { normal, zeros };

/// Memory on the device: numbers of a standard normal distribution, each array's own, or zeros for what is summed up.
template <class T>
class Array {
 public:
  Array(Device& on, std::int64_t size, Start start = Start::normal) : buffer_(on, static_cast<std::size_t>(size)) {
    if (start == Start::zeros) return;
    constexpr std::size_t period = 65521;  // a prime number: a matrix's rows differ
    static unsigned seed = 0;
    std::mt19937 random(++seed);
    std::normal_distribution<float> normal;
    std::vector<T> block(std::min(period, buffer_.size()));
    for (T& number : block) number = tf::from_float<T>(normal(random));
    for (std::size_t first = 0; first < buffer_.size(); first += period)
      buffer_.upload(std::span<const T>(block).first(std::min(period, buffer_.size() - first)), first);
  }
  operator T*() { return buffer_.data(); }

 private:
  tf::Buffer<Device, T> buffer_;
};

void check(cudaError_t status, const char* what) {
  if (status != cudaSuccess) throw tf::Error("benchmark", what, "success", cudaGetErrorString(status));
}

class Bench {
 public:
  Bench(bool runs, int repetitions) : runs_(runs), repetitions_(repetitions) {
    if (!runs_) return;
    check(cudaEventCreate(&begin_), "event");
    check(cudaEventCreate(&end_), "event");
    if (!on_host) cache_ = {on_, std::size_t{256} << 20};
  }
  Bench(const Bench&) = delete;
  ~Bench() {
    if (begin_) (void)cudaEventDestroy(begin_);
    if (end_) (void)cudaEventDestroy(end_);
  }
  Device& on() { return on_; }
  bool runs() const { return runs_; }

  /// Runs the operation a few times and prints the median time. `restore` makes its input anew before each, untimed.
  void operator()(
      const std::string& name, const Work& work, const std::function<void()>& operation,
      const std::function<void()>& restore = [] {}) {
    std::printf("{\"name\": \"%s\", \"bytes\": %.0f, \"flops\": %.0f", name.c_str(), work.bytes, work.flops);
    for (const Peak& peak : peaks)
      std::printf(", \"bound_us_%s\": %.2f", peak.gpu,
                  1e6 * std::max(work.bytes / peak.bytes, work.flops / peak.flops));
    if (runs_) {
      const double us = median(operation, restore);
      std::printf(", \"%s\": %.2f", on_host ? "host_us_without_meaning" : "us", us);
      if (!on_host) std::printf(", \"tb_per_s\": %.3f, \"tflops\": %.1f", work.bytes / us / 1e6, work.flops / us / 1e6);
    }
    std::puts("}");
  }

 private:
  /// Microseconds.
  double median(const std::function<void()>& operation, const std::function<void()>& restore) {
    for (int i = 0; i < (on_host ? 1 : 3); ++i) restore(), operation();
    std::vector<double> times;
    for (int i = 0; i < repetitions_; ++i) {
      float ms = 0;
      restore();
      cache_.zero();
      check(cudaEventRecord(begin_, on_.stream()), "event");
      operation();
      check(cudaEventRecord(end_, on_.stream()), "event");
      check(cudaEventSynchronize(end_), "operation");
      check(cudaEventElapsedTime(&ms, begin_, end_), "event");
      times.push_back(1e3 * double{ms});
    }
    std::sort(times.begin(), times.end());
    return times[times.size() / 2];
  }
  Device on_;
  tf::Buffer<Device, std::uint8_t> cache_;  // more than any L2 cache: writing it takes everything else out of it
  bool runs_;
  int repetitions_;
  cudaEvent_t begin_ = nullptr, end_ = nullptr;
};

double bytes_of(std::int64_t elements, std::size_t size = sizeof(bf16)) {
  return static_cast<double>(elements) * static_cast<double>(size);
}

// Each measures one operation and its backward. Arrays exist only where something runs.

void copy(Bench& bench, const Shape& s) {
  const std::int64_t n = s.tokens * s.d_ff;
  const std::int64_t there = bench.runs() ? n : 0;
  Array<bf16> a(bench.on(), there), b(bench.on(), there);
  bench("copy", {2 * bytes_of(n), 0}, [&] {
    check(cudaMemcpyAsync(b, a, static_cast<std::size_t>(n) * sizeof(bf16), cudaMemcpyDeviceToDevice,
                          bench.on().stream()),
          "copy");
  });
}

void norms(Bench& bench, const Shape& s) {
  constexpr auto form = tf::norm_form(tf::fixed<tf::RMSNorm{}>);
  const std::int64_t n = s.tokens * s.d_model, there = bench.runs() ? n : 0;
  Array<bf16> x(bench.on(), there), y(bench.on(), there), dy(bench.on(), there), dx(bench.on(), there);
  Array<float> gain(bench.on(), s.d_model), scale(bench.on(), s.tokens), dgain(bench.on(), s.d_model, Start::zeros);
  const tf::NormArgs<bf16> forward{
      .y = y, .x = x, .residual = dy, .gain = gain, .scale = scale, .rows = s.tokens, .width = s.d_model};
  bench("rmsnorm_and_residual", {3 * bytes_of(n), 0}, [&] { norm_rows(bench.on(), form, forward); });
  const tf::NormBackwardArgs<bf16> backward{
      .dx = dx, .dy = dy, .x = x, .gain = gain, .scale = scale, .dgain = dgain, .rows = s.tokens, .width = s.d_model};
  bench("rmsnorm_backward", {3 * bytes_of(n), 0}, [&] { norm_rows_backward(bench.on(), form, backward); });
}

void heads(Bench& bench, const Shape& s) {
  const int q = s.heads * s.head_dim, kv = s.kv_heads * s.head_dim;
  const std::int64_t n = s.tokens * (q + 2 * kv), there = bench.runs() ? s.tokens : 0;
  Array<bf16> qkv(bench.on(), there * (q + 2 * kv)), to_q(bench.on(), there * q), to_k(bench.on(), there * kv),
      to_v(bench.on(), there * kv);
  std::vector<float> turns;
  for (int i = 0; i < s.head_dim / 2; ++i)
    turns.push_back(std::pow(5e5f, -2.f * static_cast<float>(i) / static_cast<float>(s.head_dim)));
  std::vector<std::int32_t> places;
  for (std::int64_t t = 0; t < s.tokens; ++t) places.push_back(static_cast<std::int32_t>(t));
  tf::Buffer<Device, float> frequencies(bench.on(), turns);
  const tf::Buffer<Device, std::int32_t> positions(bench.on(), places);
  const tf::HeadsArgs<bf16> args{.q = to_q,
                                 .k = to_k,
                                 .v = to_v,
                                 .qkv = qkv,
                                 .position = positions.data(),
                                 .tokens = s.tokens,
                                 .heads = s.heads,
                                 .kv_heads = s.kv_heads,
                                 .head_dim = s.head_dim};
  bench("rope_and_cache", {2 * bytes_of(n), 0}, [&] {
    prepare_heads(bench.on(), tf::norm_form(tf::fixed<tf::NoNorm{}>),
                  tf::Rotation<tf::Pairs::halves>{frequencies.data(), s.head_dim}, args);
  });
}

/// Causal attention of `queries` tokens of each sequence, the last ones of `keys`.
void attention(Bench& bench, const Shape& s, const std::string& name, int sequences, std::int64_t queries,
               std::int64_t keys, bool backward) {
  const int q = s.heads * s.head_dim, kv = s.kv_heads * s.head_dim;
  const std::int64_t q_size = sequences * queries * q, kv_size = sequences * keys * kv;
  const std::int64_t q_there = bench.runs() ? q_size : 0, kv_there = bench.runs() ? kv_size : 0;
  Array<bf16> to_q(bench.on(), q_there), to_k(bench.on(), kv_there), to_v(bench.on(), kv_there), o(bench.on(), q_there);
  Array<float> lse(bench.on(), sequences * queries * s.heads);
  std::vector<tf::Segment> segments;
  for (int i = 0; i < sequences; ++i)
    segments.push_back({.query_row = i * queries,
                        .key_row = i * keys,
                        .queries = static_cast<int>(queries),
                        .keys = static_cast<int>(keys),
                        .first_position = static_cast<int>(keys - queries)});
  const tf::Buffer<Device, tf::Segment> there(bench.on(), segments);
  const tf::AttendArgs<bf16> args{.o = o,
                                  .q = to_q,
                                  .k = to_k,
                                  .v = to_v,
                                  .lse = lse,
                                  .segments = there.data(),
                                  .host_segments = segments.data(),
                                  .segment_count = sequences,
                                  .heads = s.heads,
                                  .kv_heads = s.kv_heads,
                                  .head_dim = s.head_dim};
  const tf::ScoreForm<false, tf::NoBias> score{1.f / std::sqrt(static_cast<float>(s.head_dim))};
  const double pairs = static_cast<double>(sequences) * static_cast<double>(queries) *
                       (static_cast<double>(keys) - static_cast<double>(queries - 1) / 2);
  const double flops = 4 * pairs * q;
  bench(name, {2 * bytes_of(q_size) + 2 * bytes_of(kv_size), flops},
        [&] { attend(bench.on(), tf::Causal{}, score, args); });
  if (!backward) return;
  Array<bf16> d_o(bench.on(), q_there), dq(bench.on(), q_there), dk(bench.on(), kv_there), dv(bench.on(), kv_there);
  // q, d_o, dq; k, v, dk, dv. The output serves to save arithmetic, of which there are five products at least.
  bench(name + "_backward", {3 * bytes_of(q_size) + 4 * bytes_of(kv_size), 2.5 * flops}, [&] {
    attend_backward(bench.on(), tf::Causal{}, score,
                    tf::AttendBackwardArgs<bf16>{.dq = dq, .dk = dk, .dv = dv, .d_o = d_o, .forward = args});
  });
}

void product(Bench& bench, const std::string& name, std::int64_t rows, int in, int out) {
  const std::int64_t there = bench.runs() ? 1 : 0;
  Array<bf16> x(bench.on(), there * rows * in), w(bench.on(), there * in * out), y(bench.on(), there * rows * out);
  bench(name,
        {bytes_of(rows * in) + bytes_of(std::int64_t{in} * out) + bytes_of(rows * out),
         2. * static_cast<double>(rows) * in * out},
        [&] {
          linear(bench.on(), tf::LinearArgs<bf16, bf16>{.y = y, .x = x, .w = w, .rows = rows, .in = in, .out = out});
        });
}

void activations(Bench& bench, const Shape& s) {
  const std::int64_t n = s.tokens * s.d_ff, there = bench.runs() ? n : 0;
  Array<bf16> x(bench.on(), 2 * there), y(bench.on(), there), dx(bench.on(), 2 * there);
  bench("swiglu", {3 * bytes_of(n), 0}, [&] {
    activate(bench.on(), tf::SwiGLU{}, tf::ActivateArgs<bf16>{.y = y, .x = x, .rows = s.tokens, .width = s.d_ff});
  });
  bench("swiglu_backward", {5 * bytes_of(n), 0}, [&] {
    activate_backward(bench.on(), tf::SwiGLU{},
                      tf::ActivateBackwardArgs<bf16>{.dx = dx, .dy = y, .x = x, .rows = s.tokens, .width = s.d_ff});
  });
}

void tables(Bench& bench, const Shape& s) {
  const std::int64_t n = s.tokens * s.d_model, there = bench.runs() ? 1 : 0;
  Array<bf16> table(bench.on(), there * s.vocab * s.d_model), y(bench.on(), there * n);
  Array<float> dtable(bench.on(), there * s.vocab * s.d_model, Start::zeros);
  std::vector<std::int32_t> ids;
  for (std::int64_t t = 0; t < s.tokens; ++t) ids.push_back(static_cast<std::int32_t>(t * 7919 % s.vocab));
  const tf::Buffer<Device, std::int32_t> index(bench.on(), ids);
  bench("embedding", {2 * bytes_of(n), 0}, [&] {
    gather_rows(bench.on(), tf::GatherArgs<bf16, bf16>{
                                .y = y, .table = table, .index = index.data(), .tokens = s.tokens, .width = s.d_model});
  });
  bench("embedding_backward", {bytes_of(n) + 2 * bytes_of(n, sizeof(float)), 0}, [&] {
    gather_rows_backward(bench.on(),
                         tf::GatherBackwardArgs<bf16>{
                             .dtable = dtable, .dy = y, .index = index.data(), .tokens = s.tokens, .width = s.d_model});
  });
}

void losses(Bench& bench, const Shape& s) {
  const std::int64_t rows = std::min<std::int64_t>(s.tokens, 1024), n = rows * s.vocab, there = bench.runs() ? 1 : 0;
  Array<bf16> logits(bench.on(), there * n), gradient(bench.on(), there * n);
  std::vector<std::int32_t> classes;
  for (std::int64_t r = 0; r < rows; ++r) classes.push_back(static_cast<std::int32_t>(r * 7919 % s.vocab));
  const tf::Buffer<Device, std::int32_t> labels(bench.on(), classes);
  tf::Buffer<Device, std::int32_t> ids(bench.on(), static_cast<std::size_t>(s.sequences));
  Array<float> loss(bench.on(), rows), row(bench.on(), there * s.sequences * s.vocab);
  bench(
      "cross_entropy_and_gradient", {2 * bytes_of(n), 0},
      [&] {
        cross_entropy(bench.on(), tf::CrossEntropyArgs<bf16>{.logits = gradient,
                                                             .labels = labels.data(),
                                                             .loss = loss,
                                                             .rows = rows,
                                                             .vocab = s.vocab,
                                                             .gradient = true});
      },
      [&] {  // gradients take the place of logits
        check(cudaMemcpyAsync(gradient, logits, static_cast<std::size_t>(n) * sizeof(bf16), cudaMemcpyDeviceToDevice,
                              bench.on().stream()),
              "copy");
      });
  const std::vector<tf::SampleRule> rules(static_cast<std::size_t>(s.sequences),
                                          tf::SampleRule{.temperature = .7f, .top_k = 40, .top_p = .9f});
  const tf::Buffer<Device, tf::SampleRule> there_rules(bench.on(), rules);
  bench("sample", {bytes_of(std::int64_t{s.sequences} * s.vocab, sizeof(float)), 0}, [&] {
    sample_rows(bench.on(), tf::SampleArgs{ids.data(), row, there_rules.data(), s.sequences, s.vocab});
  });
}

void optimizer(Bench& bench, const Shape& s) {
  const std::int64_t n = std::int64_t{s.d_model} * s.d_ff, there = bench.runs() ? n : 0;
  Array<float> w(bench.on(), there), g(bench.on(), there), m(bench.on(), there, Start::zeros),
      v(bench.on(), there, Start::zeros);
  bench("adamw", {7 * bytes_of(n, sizeof(float)), 0},
        [&] { adamw(bench.on(), tf::AdamWArgs{.weight = w, .gradient = g, .m = m, .v = v, .count = n}); });
}

void run(bool with_small, bool only_bounds) {
  const Shape& s = with_small ? small : large;
  Bench bench(!only_bounds, with_small ? 1 : 11);
  copy(bench, s);
  norms(bench, s);
  heads(bench, s);
  attention(bench, s, "attention_causal", 1, s.tokens, s.tokens, true);
  attention(bench, s, "attention_decode", s.sequences, 1, s.context, false);
  activations(bench, s);
  tables(bench, s);
  losses(bench, s);
  optimizer(bench, s);
  product(bench, "product_qkv", s.tokens, s.d_model, (s.heads + 2 * s.kv_heads) * s.head_dim);
  product(bench, "product_ffn_up", s.tokens, s.d_model, 2 * s.d_ff);
  product(bench, "product_ffn_up_of_one_token", 1, s.d_model, 2 * s.d_ff);
}

}  // namespace

int main(int count, char** arguments) {
  bool with_small = false, only_bounds = false;
  for (int i = 1; i < count; ++i) {
    with_small = with_small || arguments[i] == std::string_view("--small");
    only_bounds = only_bounds || arguments[i] == std::string_view("--bounds");
  }
  try {
    run(with_small, only_bounds);
  } catch (const tf::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
