/// What the tests of attention share: random problems, the judge, and the comparison.
#pragma once
#include <algorithm>
#include <limits>
#include <numeric>

#include "attention.hpp"
#include "reference/gradient.hpp"
#include "reference/operation.hpp"
#include "support.hpp"

namespace attention {

using reference::Tensor;
using support::Number;

inline constexpr double infinity = std::numeric_limits<double>::infinity();
inline const reference::Buckets buckets{8, 20, true};

/// Sequences one after the other; keys < 0: as many as queries.
inline Problem problem(std::vector<Sequence> sequences, int heads, int kv_heads, int head_dim) {
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

/// `reach`: distances beyond have the buckets of the outermost one; from 7 on all have the last bucket.
inline void use_table(Problem& p, int reach = static_cast<int>(buckets.max_distance)) {
  p.bias = "table";
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

inline Drawn draw(Number number, const Problem& p, double size = 1) {
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

inline bool sees(const Problem& p, const Sequence& s, std::size_t query, std::size_t key) {
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

inline reference::Attention attention_of(const Problem& p) {
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

inline void check_lse(Number number, const std::vector<double>& expected, const std::vector<double>& ours) {
  REQUIRE(ours.size() == expected.size());
  const double allowed = number == Number::f32 ? 4e-6 : 1e-5;  // of exponentials and products of float
  for (std::size_t i = 0; i < ours.size(); ++i) {
    const bool near = std::fabs(ours[i] - expected[i]) <= allowed * (1 + std::fabs(expected[i]));
    CHECK((ours[i] == expected[i] || (near && std::isfinite(expected[i]))));
  }
}

/// `twice`: a second run must give the same gradients.
inline void check(Number number, const Problem& p, bool twice = true) {
  CAPTURE(p.mask);
  CAPTURE(p.bias);
  CAPTURE(p.head_dim);
  CAPTURE(p.query_rows);
  CAPTURE(p.key_rows);
  CAPTURE(p.shift);
  const Drawn drawn = draw(number, p);
  const Results expected = judge<double>(p, drawn), naive = judge<float>(p, drawn), ours = run(number, p, drawn.rows);
  int keys = 1;
  for (const Sequence& s : p.sequences) keys = std::max(keys, std::max(s.keys, s.queries));
  const auto terms = static_cast<std::size_t>(keys + p.head_dim);
  support::compare(number, "o", expected.o, naive.o, ours.o, terms);
  if (p.keeps_lse)
    check_lse(number, expected.lse, ours.lse);
  else
    CHECK(std::all_of(ours.lse.begin(), ours.lse.end(), [](double x) { return std::isnan(x); }));
  if (!p.backward) return;
  // gradients of scores are differences do . v - do . o, which cancel where queries see few keys
  const double difference = std::sqrt(p.head_dim);
  // a query's weights sum up to one: so many of them has a key of the sequence with the fewest keys for its queries
  double weight = 1;
  for (const Sequence& s : p.sequences)
    if (s.keys > 0) weight = std::fmax(weight, s.queries * p.heads / p.kv_heads / static_cast<double>(s.keys));
  const double differences = difference * std::sqrt(weight);
  const auto size_of = [](const std::vector<double>& sums, double term) {
    for (const double sum : sums) term = std::fmax(term, std::fabs(sum));
    return term;
  };
  support::compare(number, "dq", expected.dq, naive.dq, ours.dq, terms, size_of(expected.dq, p.scale * difference));
  support::compare(number, "dk", expected.dk, naive.dk, ours.dk, terms, size_of(expected.dk, p.scale * differences));
  support::compare(number, "dv", expected.dv, naive.dv, ours.dv, terms);
  if (p.bias == "table")
    support::compare(number, "dtable", expected.dtable, naive.dtable, ours.dtable, terms * terms,
                     size_of(expected.dtable, differences));
  if (!twice) return;
  const Results again = run(number, p, drawn.rows);
  CHECK((again.dq == ours.dq && again.dk == ours.dk && again.dv == ours.dv && again.dtable == ours.dtable));
}

inline void check_both(const Problem& p) {
  for (const Number number : {Number::f32, Number::bf16}) check(number, p);
}

/// Whether numbers of `row` are all NaN, rows being `width` numbers.
inline bool all_nan(const std::vector<double>& numbers, std::size_t row, std::size_t width) {
  const auto begin = numbers.begin() + static_cast<std::ptrdiff_t>(row * width);
  return std::all_of(begin, begin + static_cast<std::ptrdiff_t>(width), [](double x) { return std::isnan(x); });
}

}  // namespace attention
