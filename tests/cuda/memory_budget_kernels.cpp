// Runs every kernel once on aligned arrays of a small model's sizes, and counts what it asks of the memory.
#include "memory_budget.hpp"

#include <cstdio>
#include <cstdlib>

#include "arrays.hpp"
#include "typeformer/simt/counters.hpp"

namespace memory_budget {
namespace {

using namespace typeformer;
using support::Array;

constexpr int tokens = 64, width = 512, heads = 4, kv_heads = 2, head_dim = 64, vocab = 2048;

std::vector<double> numbers(int count) {
  std::vector<double> result;
  for (int i = 0; i < count; ++i) result.push_back(std::sin(.7 * i));
  return result;
}

/// Rows of one warp, or of a block.
template <class T>
void run_norm(cuda::Device& on, int columns) {
  constexpr auto form = norm_form(fixed<LayerNorm{}>);
  Array<T> x(on, numbers(tokens * columns)), y(on, numbers(tokens * columns));
  Array<float> gain(on, numbers(columns)), sums(on, numbers(columns)), mean(on, tokens), scale(on, tokens);
  NormArgs<T> a;
  a.x = a.residual = x.data();
  a.y = y.data();
  a.gain = a.bias = gain.data();
  a.mean = mean.data();
  a.scale = scale.data();
  a.rows = tokens;
  a.width = columns;
  norm_rows(on, form, a);
  NormBackwardArgs<T> b;
  b.dx = y.data();
  b.dy = b.x = x.data();
  b.gain = a.gain;
  b.mean = a.mean;
  b.scale = a.scale;
  b.dgain = b.dbias = sums.data();
  b.rows = tokens;
  b.width = columns;
  norm_rows_backward(on, form, b);
  on.synchronize();
}

template <class T>
void run_linear(cuda::Device& on) {
  Array<T> x(on, numbers(8 * width)), w(on, numbers(256 * width)), y(on, 8 * 256);
  Array<float> bias(on, numbers(256));
  LinearArgs<T, T> a;
  a.x = x.data();
  a.w = w.data();
  a.y = y.data();
  a.bias = bias.data();
  a.rows = 8;
  a.in = width;
  a.out = 256;
  linear(on, a);
  const AddArgs<T> sum{y.data(), y.data(), y.data(), 8 * 256};
  add(on, sum);
  on.synchronize();
}

template <class T>
void run_embedding(cuda::Device& on) {
  Array<T> table(on, numbers(100 * width)), rows(on, numbers(tokens * width));
  Array<float> dtable(on, numbers(100 * width));
  std::vector<std::int32_t> ids;
  for (int i = 0; i < tokens; ++i) ids.push_back(i * i % 100);
  const Buffer<cuda::Device, std::int32_t> index(on, std::span<const std::int32_t>(ids));
  GatherArgs<T, T> a;
  a.y = rows.data();
  a.table = table.data();
  a.index = index.data();
  a.tokens = tokens;
  a.width = width;
  gather_rows(on, a);
  GatherBackwardArgs<T> b;
  b.dtable = dtable.data();
  b.dy = rows.data();
  b.index = index.data();
  b.tokens = tokens;
  b.width = width;
  gather_rows_backward(on, b);
  on.synchronize();
}

template <class T>
void run_heads(cuda::Device& on, bool all_heads) {
  constexpr auto form = norm_form(fixed<RMSNorm{}>);
  constexpr int row = (heads + 2 * kv_heads) * head_dim;
  Array<T> qkv(on, numbers(tokens * row)), dqkv(on, numbers(tokens * row)), q(on, numbers(tokens * heads * head_dim)),
      k(on, numbers(tokens * kv_heads * head_dim)), v(on, numbers(tokens * kv_heads * head_dim));
  Array<float> gain(on, numbers(heads * head_dim)), sums(on, numbers(heads * head_dim)),
      frequencies(on, numbers(head_dim / 2));
  std::vector<std::int32_t> positions;
  for (int i = 0; i < tokens; ++i) positions.push_back(i);
  const Buffer<cuda::Device, std::int32_t> position(on, std::span<const std::int32_t>(positions));
  const Rotation<Pairs::halves> rotation{frequencies.data(), head_dim, 1.f};
  HeadsBackwardArgs<T> b;
  HeadsArgs<T>& a = b.forward;
  a.q = q.data();
  a.k = k.data();
  a.v = v.data();
  a.qkv = qkv.data();
  a.q_gain = a.k_gain = gain.data();
  a.position = position.data();
  a.tokens = tokens;
  a.heads = heads;
  a.kv_heads = kv_heads;
  a.head_dim = head_dim;
  a.all_heads = all_heads;
  prepare_heads(on, form, rotation, a);
  b.dqkv = dqkv.data();
  b.dq = a.q;
  b.dk = a.k;
  b.dv = a.v;
  b.dq_gain = b.dk_gain = sums.data();
  prepare_heads_backward(on, form, rotation, b);
  on.synchronize();
}

/// Whole tiles of `queries` and `length` keys: as many by tiles, and backward; few queries by splits. Every query sees
/// every key: where lanes branch, what one of them does the n-th time is counted with what the others do the n-th time.
template <class T>
void run_attention(cuda::Device& on, int queries, int length) {
  Array<T> q(on, numbers(queries * heads * head_dim)), o(on, numbers(queries * heads * head_dim)),
      dq(on, numbers(queries * heads * head_dim)), k(on, numbers(length * kv_heads * head_dim)),
      v(on, numbers(length * kv_heads * head_dim)), dk(on, numbers(length * kv_heads * head_dim)),
      dv(on, numbers(length * kv_heads * head_dim));
  Array<float> lse(on, numbers(queries * heads));
  Segment segment;
  segment.queries = queries;
  segment.keys = length;
  segment.first_position = length - queries;
  const Buffer<cuda::Device, Segment> segments(on, std::span<const Segment>(&segment, 1));
  AttendBackwardArgs<T> b;
  AttendArgs<T>& a = b.forward;
  a.o = o.data();
  a.q = q.data();
  a.k = k.data();
  a.v = v.data();
  a.lse = lse.data();
  a.segments = segments.data();
  a.host_segments = &segment;
  a.segment_count = 1;
  a.heads = heads;
  a.kv_heads = kv_heads;
  a.head_dim = head_dim;
  cuda::detail::check_attend("attend", a);
  const ScoreForm<false, NoBias> score{.125f, 0.f, {}};
  cuda::detail::attend_at<head_dim>(on, Bidirectional{}, score, a);
  on.synchronize();
  if (queries < length) return;
  b.dq = dq.data();
  b.dk = dk.data();
  b.dv = dv.data();
  b.d_o = q.data();
  cuda::detail::attend_backward_at<head_dim>(on, Bidirectional{}, score, b);
  on.synchronize();
}

template <class T>
void run_activation(cuda::Device& on) {
  Array<T> x(on, numbers(2 * tokens * width)), y(on, numbers(tokens * width)), dx(on, numbers(2 * tokens * width));
  ActivateArgs<T> a;
  a.y = y.data();
  a.x = x.data();
  a.rows = tokens;
  a.width = width;
  activate(on, Gated<SiLU>{}, a);
  ActivateBackwardArgs<T> b;
  b.dx = dx.data();
  b.dy = y.data();
  b.x = x.data();
  b.rows = tokens;
  b.width = width;
  activate_backward(on, Gated<SiLU>{}, b);
  on.synchronize();
}

template <class T>
void run_loss(cuda::Device& on) {
  Array<T> logits(on, numbers(8 * vocab));
  Array<float> loss(on, 8);
  const std::vector<std::int32_t> ids{3, 1, 4, 1, 5, 9, 2, 6};
  const Buffer<cuda::Device, std::int32_t> labels(on, std::span<const std::int32_t>(ids));
  CrossEntropyArgs<T> a;
  a.logits = logits.data();
  a.labels = labels.data();
  a.loss = loss.data();
  a.rows = 8;
  a.vocab = vocab;
  a.gradient = true;
  cross_entropy(on, a);
  on.synchronize();
}

void run_floats(cuda::Device& on) {
  constexpr int count = 8 * vocab;
  Array<float> weight(on, numbers(count)), m(on, numbers(count)), v(on, std::vector<double>(count, 1)),
      logits(on, numbers(count));
  AdamWArgs a;
  a.weight = weight.data();
  a.gradient = logits.data();
  a.m = m.data();
  a.v = v.data();
  a.count = count;
  adamw(on, a);
  (void)sum_of_squares(on, weight.data(), count);
  std::vector<SampleRule> list;
  for (int row = 0; row < 8; ++row)
    list.push_back({.seed = 1, .step = static_cast<std::uint64_t>(row), .temperature = .8f, .top_k = 50, .top_p = .9f});
  const Buffer<cuda::Device, SampleRule> rules(on, std::span<const SampleRule>(list));
  Buffer<cuda::Device, std::int32_t> ids(on, 8);
  sample_rows(on,
              SampleArgs{.ids = ids.data(), .logits = logits.data(), .rules = rules.data(), .rows = 8, .vocab = vocab});
  ShapeLogitsArgs shape;
  shape.y = logits.data();
  shape.count = count;
  shape.cap = 30.f;
  shape_logits(on, shape);
  on.synchronize();
}

template <class T>
void run_all() {
  cuda::Device on;
  for (const int columns : {width, 4 * width}) run_norm<T>(on, columns);
  run_linear<T>(on);
  run_embedding<T>(on);
  for (const bool all_heads : {false, true}) run_heads<T>(on, all_heads);
  run_attention<T>(on, 128, 128);
  run_attention<T>(on, 4, 256);
  run_activation<T>(on);
  run_loss<T>(on);
  if (sizeof(T) == sizeof(float)) run_floats(on);
}

}  // namespace

bool available() { return simt::CountMemory::available; }

std::map<std::string, Traffic> traffic(support::Number number) {
  const simt::CountMemory counting;
  number == support::Number::f32 ? run_all<float>() : run_all<bf16>();
  std::map<std::string, Traffic> result;
  for (const auto& [name, count] : counting.kernels())
    result[name] = {count.requests,        count.sectors,    count.ideal_sectors,
                    count.shared_requests, count.wavefronts, count.ideal_wavefronts};
  if (std::getenv("TYPEFORMER_VERBOSE"))
    for (const auto& line : counting.lines())
      if (line.ratio() > 1)
        std::printf("%5.2f %8d %s %s %2u bytes %s\n", line.ratio(), static_cast<int>(line.instructions),
                    line.shared ? "shared" : "global", line.store ? "store" : "load", line.bytes, line.where.c_str());
  return result;
}

}  // namespace memory_budget
