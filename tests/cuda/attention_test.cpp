// attend and attend_backward against the judge and PyTorch: every mask and score, sizes around the tiles, ragged
// batches, rings, grouped heads, all padded head_dims, unaligned arrays.
#include <algorithm>
#include <limits>
#include <numeric>

#include "attention.hpp"
#include "reference/gradient.hpp"
#include "reference/operation.hpp"
#include "support.hpp"

namespace {

using attention::Inputs;
using attention::Problem;
using attention::Results;
using attention::Sequence;
using reference::Tensor;
using support::Number;

constexpr double infinity = std::numeric_limits<double>::infinity();
const reference::Buckets buckets{8, 20, true};

/// Sequences one after the other; keys < 0: as many as queries.
Problem problem(std::vector<Sequence> sequences, int heads, int kv_heads, int head_dim) {
  Problem p;
  p.heads = heads;
  p.kv_heads = kv_heads;
  p.head_dim = head_dim;
  p.scale = static_cast<double>(static_cast<float>(1 / std::sqrt(head_dim)));
  for (Sequence& s : sequences) {
    if (s.keys < 0) s.keys = s.queries;
    s.query_row = p.query_rows;
    s.key_row = p.key_rows;
    p.query_rows += s.queries;
    p.key_rows += s.ring ? s.ring : s.keys;
  }
  p.sequences = std::move(sequences);
  return p;
}

void use_table(Problem& p) {
  p.bias = "table";
  const int reach = static_cast<int>(buckets.max_distance);
  for (int relative = -reach; relative <= reach; ++relative) {
    const auto query = static_cast<std::size_t>(relative < 0 ? -relative : 0),
               key = static_cast<std::size_t>(relative > 0 ? relative : 0);
    p.table_rows.push_back(static_cast<std::int32_t>(reference::bucket_of(buckets, query, key)));
  }
}

/// Keys and values by key, each sequence's after the other: what the cache rows are filled from.
struct Drawn {
  Inputs rows;
  std::vector<double> k, v;
};

Drawn draw(Number number, const Problem& p, double size = 1) {
  reference::Random random(static_cast<std::uint64_t>(p.query_rows * 131 + p.key_rows));
  const auto numbers = [&](std::int64_t rows, int width, double deviation) {
    return support::draw(number, random, {static_cast<std::size_t>(rows), static_cast<std::size_t>(width)}, deviation)
        .data;
  };
  Drawn drawn;
  const std::int64_t keys = std::accumulate(p.sequences.begin(), p.sequences.end(), std::int64_t{0},
                                            [](std::int64_t sum, const Sequence& s) { return sum + s.keys; });
  const int kv_width = p.kv_heads * p.head_dim;
  drawn.rows.q = numbers(p.query_rows, p.heads * p.head_dim, size);
  drawn.rows.d_o = numbers(p.query_rows, p.heads * p.head_dim, 1);
  drawn.k = numbers(keys, kv_width, size);
  drawn.v = numbers(keys, kv_width, 1);
  drawn.rows.table = support::draw(Number::f32, random, {buckets.count, static_cast<std::size_t>(p.heads)}).data;
  drawn.rows.dtable_before =
      support::draw(Number::f32, random, {buckets.count, static_cast<std::size_t>(p.heads)}).data;
  // rows of the caches; what holds no key is NaN
  const std::int64_t stride = p.kv_stride ? p.kv_stride : kv_width;
  drawn.rows.k.assign(static_cast<std::size_t>(p.key_rows * stride), NAN);
  drawn.rows.v = drawn.rows.k;
  std::int64_t at = 0;
  for (const Sequence& s : p.sequences)
    for (int key = 0; key < s.keys; ++key, ++at)
      for (int i = 0; i < kv_width; ++i) {
        const auto to = static_cast<std::size_t>((s.key_row + (s.ring ? key % s.ring : key)) * stride + i);
        drawn.rows.k[to] = drawn.k[static_cast<std::size_t>(at * kv_width + i)];
        drawn.rows.v[to] = drawn.v[static_cast<std::size_t>(at * kv_width + i)];
      }
  return drawn;
}

// --- the judge ------------------------------------------------------------------------------------------------------

bool sees(const Problem& p, const Sequence& s, std::size_t query, std::size_t key) {
  if (p.mask == "every_third") return key <= query && (query - key) % 3 == 0;
  reference::Mask mask;
  mask.kind = p.mask == "causal"          ? reference::MaskKind::causal
              : p.mask == "bidirectional" ? reference::MaskKind::bidirectional
              : p.mask == "window"        ? reference::MaskKind::sliding
              : p.mask == "chunked"       ? reference::MaskKind::chunked
                                          : reference::MaskKind::prefix;
  mask.window = static_cast<std::size_t>(p.window);
  return reference::sees(mask, query, key, static_cast<std::size_t>(s.prefix));
}

reference::Attention attention_of(const Problem& p) {
  reference::Attention a;
  a.heads = static_cast<std::size_t>(p.heads);
  a.kv_heads = static_cast<std::size_t>(p.kv_heads);
  a.head_dim = static_cast<std::size_t>(p.head_dim);
  a.scale = p.scale;
  if (p.cap > 0) a.soft_cap = p.cap;
  return a;
}

/// One sequence: inputs q, k, v, table; lse: [queries, heads].
template <class N>
Tensor<N> attend(const Problem& p, const Sequence& s, const std::vector<Tensor<N>>& in, std::vector<double>* lse) {
  using std::exp;
  const reference::Attention attention = attention_of(p);
  reference::Layer layer;
  layer.position = p.bias == "alibi"   ? reference::PositionKind::alibi
                   : p.bias == "table" ? reference::PositionKind::buckets
                                       : reference::PositionKind::none;
  const reference::ScoreRule<N> rule{attention, layer, &buckets, &in[3], 0, 0};
  Tensor<N> o(in[0].shape);
  const std::size_t dim = attention.head_dim, group = attention.heads / attention.kv_heads;
  for (std::size_t r = 0; r < static_cast<std::size_t>(s.queries); ++r)
    for (std::size_t head = 0; head < attention.heads; ++head) {
      const std::size_t query = static_cast<std::size_t>(s.first_position) + r, column = head / group * dim;
      std::vector<std::size_t> keys;
      std::vector<N> weights;
      for (std::size_t key = 0; key < static_cast<std::size_t>(s.keys); ++key)
        if (sees(p, s, query, key)) {
          keys.push_back(key);
          weights.push_back(
              reference::score(rule, in[0].row(r) + head * dim, in[1].row(key) + column, head, query, key));
        }
      for (std::size_t i = 0; i < dim; ++i) o(r, head * dim + i) = reference::constant<N>(0);
      if constexpr (std::is_floating_point_v<N>) {
        if (lse) {
          double sum = 0, largest = -infinity;
          for (const N w : weights) largest = std::fmax(largest, static_cast<double>(w));
          for (const N w : weights) sum += std::exp(static_cast<double>(w) - largest);
          lse->push_back(weights.empty() ? -infinity : largest + std::log(sum));
        }
      }
      if (keys.empty()) continue;
      reference::softmax(weights);
      std::vector<N> values(keys.size());
      for (std::size_t i = 0; i < dim; ++i) {
        for (std::size_t j = 0; j < keys.size(); ++j) values[j] = in[2](keys[j], column + i);
        o(r, head * dim + i) = reference::dot(weights.data(), values.data(), keys.size());
      }
    }
  return o;
}

template <class N>
void append(std::vector<double>& to, const Tensor<N>& from) {
  for (const N number : from.data) to.push_back(static_cast<double>(number));
}

/// All sequences in the precision N; gradients of k and v by key.
template <class N>
Results judge(const Problem& p, const Drawn& drawn) {
  Results results;
  Tensor<N> dtable({buckets.count, static_cast<std::size_t>(p.heads)});
  for (std::size_t i = 0; i < dtable.size(); ++i) dtable.data[i] = static_cast<N>(drawn.rows.dtable_before[i]);
  std::int64_t key_at = 0;
  for (const Sequence& s : p.sequences) {
    const auto part = [](const std::vector<double>& from, std::int64_t row, int rows, int width) {
      Tensor<N> tensor({static_cast<std::size_t>(rows), static_cast<std::size_t>(width)});
      for (std::size_t i = 0; i < tensor.size(); ++i)
        tensor.data[i] = static_cast<N>(from[static_cast<std::size_t>(row * width) + i]);
      return tensor;
    };
    const int width = p.heads * p.head_dim, kv_width = p.kv_heads * p.head_dim;
    const std::vector<Tensor<N>> in{part(drawn.rows.q, s.query_row, s.queries, width),
                                    part(drawn.k, key_at, s.keys, kv_width), part(drawn.v, key_at, s.keys, kv_width),
                                    part(drawn.rows.table, 0, static_cast<int>(buckets.count), p.heads)};
    append(results.o, attend(p, s, in, &results.lse));
    key_at += s.keys;
    if (!p.backward) continue;
    const auto formula = [&](const auto& inputs) { return attend(p, s, inputs, nullptr); };
    const auto gradients = reference::pullback(formula, in, part(drawn.rows.d_o, s.query_row, s.queries, width));
    append(results.dq, gradients[0]);
    append(results.dk, gradients[1]);
    append(results.dv, gradients[2]);
    reference::accumulate(dtable, gradients[3]);
  }
  if (p.backward && p.bias == "table") append(results.dtable, dtable);
  return results;
}

void check_lse(Number number, const std::vector<double>& expected, const std::vector<double>& ours) {
  REQUIRE(ours.size() == expected.size());
  const double allowed = number == Number::f32 ? 4e-6 : 1e-5;  // of exponentials and products of float
  for (std::size_t i = 0; i < ours.size(); ++i)
    CHECK((ours[i] == expected[i] || std::fabs(ours[i] - expected[i]) <= allowed * (1 + std::fabs(expected[i]))));
}

void check(Number number, const Problem& p) {
  CAPTURE(p.mask);
  CAPTURE(p.bias);
  CAPTURE(p.head_dim);
  CAPTURE(p.query_rows);
  CAPTURE(p.key_rows);
  CAPTURE(p.shift);
  const Drawn drawn = draw(number, p);
  const Results expected = judge<double>(p, drawn), naive = judge<float>(p, drawn),
                ours = attention::run(number, p, drawn.rows);
  int keys = 1;
  for (const Sequence& s : p.sequences) keys = std::max(keys, std::max(s.keys, s.queries));
  const auto terms = static_cast<std::size_t>(keys + p.head_dim);
  support::compare(number, "o", expected.o, naive.o, ours.o, terms);
  check_lse(number, expected.lse, ours.lse);
  if (!p.backward) return;
  // where every query sees one key both gradients are sums that cancel to zero: terms of the size of scale * do . v
  const auto all_zero = [](const std::vector<double>& all) {
    return std::all_of(all.begin(), all.end(), [](double x) { return x == 0; });
  };
  const double size = all_zero(expected.dq) ? p.scale * std::sqrt(p.head_dim) : 0;
  support::compare(number, "dq", expected.dq, naive.dq, ours.dq, terms, size);
  support::compare(number, "dk", expected.dk, naive.dk, ours.dk, terms, size);
  support::compare(number, "dv", expected.dv, naive.dv, ours.dv, terms);
  if (p.bias == "table") support::compare(number, "dtable", expected.dtable, naive.dtable, ours.dtable, terms * terms);
  const Results again = attention::run(number, p, drawn.rows);
  CHECK((again.dq == ours.dq && again.dk == ours.dk && again.dv == ours.dv && again.dtable == ours.dtable));
}

void check_both(const Problem& p) {
  for (const Number number : {Number::f32, Number::bf16}) check(number, p);
}

// --- cases ----------------------------------------------------------------------------------------------------------

TEST_CASE("attend: lengths around the tiles") {
  // tiles have 64 or 32 queries and 64, 32 or 16 keys
  for (const int length : {1, 15, 16, 17, 31, 33, 63, 64, 65, 130}) check_both(problem({{length, -1}}, 2, 1, 32));
}
TEST_CASE("attend: head_dims, heads in groups, ragged batches") {
  check_both(problem({{20, -1}, {1, -1}, {37, -1}}, 4, 1, 12));
  check_both(problem({{5, -1}, {66, -1}}, 3, 1, 40));
  check_both(problem({{35, -1}, {0, 0}, {3, -1}}, 6, 2, 64));
  check_both(problem({{18, -1}, {40, -1}}, 2, 2, 128));
  check_both(problem({{34, -1}}, 2, 1, 256));
  check_both(problem({{9, -1}}, 1, 1, 33));
  check_both(problem({{9, -1}}, 2, 2, 1));
}
TEST_CASE("attend: masks") {
  for (const char* mask : {"bidirectional", "every_third"}) {
    Problem p = problem({{40, -1}, {70, -1}}, 2, 1, 32);
    p.mask = mask;
    check_both(p);
  }
  for (const int window : {1, 7, 33, 200})
    for (const char* mask : {"window", "chunked"}) {
      Problem p = problem({{97, -1}, {30, -1}}, 2, 1, 32);
      p.mask = mask;
      p.window = window;
      check_both(p);
    }
  for (const int prefix : {0, 5, 50, 90}) {
    Problem p =
        problem({{.queries = 90, .keys = 90, .prefix = prefix}, {.queries = 10, .keys = 10, .prefix = 3}}, 1, 1, 32);
    p.mask = "prefix";
    check_both(p);
  }
}
TEST_CASE("attend: scores") {
  for (const char* mask : {"causal", "window"}) {
    Problem p = problem({{50, -1}}, 2, 1, 40);
    p.mask = mask;
    p.window = 20;
    p.cap = 2;
    check_both(p);
  }
  Problem alibi = problem({{50, -1}}, 3, 1, 32);
  alibi.bias = "alibi";
  check_both(alibi);
  for (const char* mask : {"causal", "bidirectional"}) {
    Problem p = problem({{50, -1}, {9, -1}}, 3, 1, 32);
    p.mask = mask;
    p.scale = 1;
    use_table(p);
    check_both(p);
  }
}
TEST_CASE("attend: across sequences of unequal length, and nothing to see") {
  for (const auto& [queries, keys] : {std::pair{7, 70}, {70, 7}, {33, 0}, {1, 1}}) {
    Problem p = problem({{queries, keys}, {5, 20}}, 2, 1, 32);
    p.mask = "bidirectional";
    check_both(p);
  }
  Problem nothing = problem({}, 2, 1, 32);
  nothing.backward = true;
  CHECK(attention::run(Number::f32, nothing, {}).o.empty());
}
TEST_CASE("attend: after cached keys, in rings, in wider rows") {
  check_both(problem(
      {{.queries = 1, .keys = 70, .first_position = 69}, {.queries = 5, .keys = 40, .first_position = 35}}, 4, 1, 64));
  for (const int queries : {1, 6}) {
    Problem p = problem({{.queries = queries, .keys = 50, .first_position = 50 - queries, .ring = 24},
                         {.queries = queries, .keys = 9, .first_position = 9 - queries, .ring = 24}},
                        2, 1, 32);
    p.mask = "window";
    p.window = 16;
    check_both(p);
    p.kv_stride = 48;
    check_both(p);
  }
}
TEST_CASE("attend: unaligned arrays, grids in pieces") {
  Problem p = problem({{40, -1}}, 2, 1, 64);
  p.shift = 1;
  check_both(p);
  p = problem({{70, -1}, {20, -1}}, 3, 1, 32);
  p.grid_limit = 2;
  check_both(p);
}
TEST_CASE("attend: large scores") {
  const Problem p = problem({{40, -1}}, 1, 1, 64);
  for (const Number number : {Number::f32, Number::bf16}) {
    const Drawn drawn = draw(number, p, 8);  // scores of several hundred
    support::compare(number, "o", judge<double>(p, drawn).o, judge<float>(p, drawn).o,
                     attention::run(number, p, drawn.rows).o, 100);
  }
}

// --- backward -------------------------------------------------------------------------------------------------------

void check_gradients(Problem p) {
  p.backward = true;
  check_both(p);
}

TEST_CASE("attend_backward: lengths around the tiles") {
  for (const int length : {1, 15, 17, 33, 63, 65, 80}) check_gradients(problem({{length, -1}}, 2, 1, 32));
}
TEST_CASE("attend_backward: head_dims, heads in groups, ragged batches") {
  check_gradients(problem({{20, -1}, {1, -1}, {37, -1}}, 4, 1, 12));
  check_gradients(problem({{5, -1}, {66, -1}}, 3, 1, 40));
  check_gradients(problem({{35, -1}, {0, 0}, {3, -1}}, 6, 2, 64));
  check_gradients(problem({{18, -1}, {36, -1}}, 2, 2, 128));
  check_gradients(problem({{34, -1}}, 2, 1, 256));
  check_gradients(problem({{9, -1}}, 1, 1, 33));
}
TEST_CASE("attend_backward: masks") {
  for (const char* mask : {"bidirectional", "every_third"}) {
    Problem p = problem({{20, -1}, {70, -1}}, 2, 1, 32);
    p.mask = mask;
    check_gradients(p);
  }
  for (const int window : {1, 7, 33})
    for (const char* mask : {"window", "chunked"}) {
      Problem p = problem({{97, -1}, {10, -1}}, 2, 1, 32);
      p.mask = mask;
      p.window = window;
      check_gradients(p);
    }
  Problem p = problem({{.queries = 90, .keys = 90, .prefix = 50}, {.queries = 10, .keys = 10, .prefix = 3}}, 1, 1, 32);
  p.mask = "prefix";
  check_gradients(p);
}
TEST_CASE("attend_backward: scores") {
  for (const char* mask : {"causal", "window"}) {
    Problem p = problem({{50, -1}}, 2, 1, 40);
    p.mask = mask;
    p.window = 20;
    p.cap = 2;
    check_gradients(p);
  }
  Problem alibi = problem({{50, -1}}, 3, 1, 32);
  alibi.bias = "alibi";
  check_gradients(alibi);
  for (const char* mask : {"causal", "bidirectional"}) {
    Problem p = problem({{72, -1}, {9, -1}}, 3, 1, 32);  // near and far of the table's reach of 20
    p.mask = mask;
    p.scale = .2;
    use_table(p);
    check_gradients(p);
  }
}
TEST_CASE("attend_backward: across sequences of unequal length, and nothing to see") {
  for (const auto& [queries, keys] : {std::pair{7, 70}, {70, 7}, {33, 0}, {0, 5}, {1, 1}}) {
    Problem p = problem({{queries, keys}, {5, 20}}, 2, 1, 32);
    p.mask = "bidirectional";
    check_gradients(p);
  }
}
TEST_CASE("attend_backward: unaligned arrays, wider rows, grids in pieces") {
  Problem p = problem({{40, -1}}, 2, 1, 64);
  p.shift = 1;
  check_gradients(p);
  p = problem({{70, -1}, {20, -1}}, 3, 1, 32);
  p.kv_stride = 40;
  p.grid_limit = 2;
  check_gradients(p);
}

TEST_CASE("attend_backward: a null dtable is a gradient that is not wanted") {
  Problem p = problem({{72, -1}, {9, -1}}, 3, 1, 32);
  p.mask = "bidirectional";
  p.scale = .2;
  p.backward = true;
  use_table(p);
  for (const Number number : {Number::f32, Number::bf16}) {
    const Drawn drawn = draw(number, p);
    p.table_gradient = true;
    const Results all = attention::run(number, p, drawn.rows);
    p.table_gradient = false;
    const Results others = attention::run(number, p, drawn.rows);
    CHECK((others.dq == all.dq && others.dk == all.dk && others.dv == all.dv));
    CHECK((others.dtable == drawn.rows.dtable_before && all.dtable != drawn.rows.dtable_before));
  }
}

/// Whether numbers of `row` are all NaN, rows being `width` numbers.
bool all_nan(const std::vector<double>& numbers, std::size_t row, std::size_t width) {
  const auto begin = numbers.begin() + static_cast<std::ptrdiff_t>(row * width);
  return std::all_of(begin, begin + static_cast<std::ptrdiff_t>(width), [](double x) { return std::isnan(x); });
}
TEST_CASE("attend: NaN and infinity in a query or in a key that it sees are not hidden") {
  const std::size_t heads = 2, width = heads * 32, bad = 20;  // a row of the first tile, and keys of several
  for (const Number number : {Number::f32, Number::bf16})
    for (const double cap : {0., 2.})
      for (const bool of_query : {true, false}) {
        CAPTURE(cap);
        CAPTURE(of_query);
        Problem p = problem({{100, -1}}, 2, 1, 32);
        p.cap = cap;
        p.backward = true;
        Drawn drawn = draw(number, p);
        (of_query ? drawn.rows.q[bad * width + 3] : drawn.rows.k[bad * 32 + 3]) = NAN;
        if (of_query) drawn.rows.q[bad * width + 32 + 3] = NAN;  // of the other head
        const Results ours = attention::run(number, p, drawn.rows);
        for (std::size_t row = 0; row < 100; ++row) {
          const bool sees_it = of_query ? row == bad : row >= bad;
          CHECK(all_nan(ours.lse, row, heads) == sees_it);
          CHECK(all_nan(ours.o, row, width) == sees_it);
          if (sees_it) CHECK(all_nan(ours.dq, row, width));
        }
        for (std::size_t key = 0; of_query && key <= bad; ++key) {
          CHECK(all_nan(ours.dk, key, 32));
          CHECK(all_nan(ours.dv, key, 32));
        }
      }
  Problem p = problem({{3, -1}}, 1, 1, 32);
  Drawn drawn = draw(Number::f32, p);
  drawn.rows.q[0] = infinity;  // softmax of an infinite score
  drawn.rows.k[0] = 1;
  for (const Number number : {Number::f32, Number::bf16}) {
    const Results ours = attention::run(number, p, drawn.rows);
    CHECK((std::isnan(ours.lse[0]) && std::isnan(ours.o[0]) && std::isfinite(ours.lse[1])));
  }
}

TEST_CASE("attend: wrong arguments are named") {
  CHECK(attention::complaint("heads") ==
        "attend: heads, kv_heads: expected heads to be a multiple of kv_heads, got 3 and 2");
  CHECK(attention::complaint("head_dim") == "attend: head_dim: expected 1 to 256, got 257");
  CHECK(attention::complaint("ring") == "attend_backward: segment 0: expected no ring, got 4 slots");
  CHECK(attention::complaint("shared keys") ==
        "attend_backward: segments: expected keys of their own for each, got two that share key row 3");
  CHECK(attention::complaint("null") == "attend: q, o: expected arrays, got null");
}

TEST_CASE("attend: as PyTorch") {
  for (const char* file : {"alibi_32", "alibi_64", "bidirectional_40", "causal_32", "causal_40", "causal_64",
                           "cross_32", "cross_64", "softcap_40", "table_32", "window_32", "window_softcap_64"})
    for (const Number number : {Number::f32, Number::bf16}) {
      CAPTURE(file);
      const auto golden = support::golden(std::string("attention_") + file);
      const auto extent = [&](const char* name, std::size_t i) {
        return static_cast<int>(golden.at(name).shape.at(i));
      };
      Problem p = problem({{extent("q", 0), extent("k", 0)}}, extent("q", 1), extent("k", 1), extent("q", 2));
      p.window = static_cast<int>(golden.at("window").data[0]);
      p.mask = golden.at("causal").data[0] == 0 ? "bidirectional" : p.window > 0 ? "window" : "causal";
      p.scale = golden.at("scale").data[0];
      p.cap = golden.at("cap").data[0];
      p.bias = golden.count("slopes") ? "alibi" : "none";
      p.backward = true;
      Inputs in{golden.at("q").data, golden.at("k").data, golden.at("v").data, golden.at("do").data, {}, {}};
      if (golden.count("table")) {
        use_table(p);
        in.table = golden.at("table").data;
        in.dtable_before.assign(in.table.size(), 0);
      }
      const Results ours = attention::run(number, p, in);
      support::compare_with_golden(number, "o", golden, ours.o);
      check_lse(number, golden.at("lse").data, ours.lse);
      if (!p.backward) continue;
      support::compare_with_golden(number, "dq", golden, ours.dq);
      support::compare_with_golden(number, "dk", golden, ours.dk);
      support::compare_with_golden(number, "dv", golden, ours.dv);
      if (golden.count("table")) support::compare_with_golden(number, "dtable", golden, ours.dtable);
    }
}

}  // namespace
