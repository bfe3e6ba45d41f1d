// test: sanitize
// attend and its backward alone, against the judge: masks, biases, groups of heads, ragged segments, rings.
#include <string>

#include "kernel/attention.hpp"

namespace {

using namespace kernel_test;

void check_gradients(const AttentionCase& c, const AttentionData& data, const AttentionResult& r,
                     const std::string& name) {
  const std::size_t q_width = c.heads * c.head_dim, kv_width = c.kv_heads * c.head_dim;
  std::vector<std::pair<std::int64_t, int>> query_rows, key_rows;
  Numbers<double> dtable(data.table.shape);
  Numbers<float> naive_dtable(data.table.shape);
  std::size_t all_pairs = 0;
  for (std::size_t i = 0; i < c.pieces.size(); ++i) {
    const Piece& piece = c.pieces[i];
    const Segment& s = data.segments[i];
    const auto pull = [&]<class T>(T) {
      return reference::pullback<T>([&](const auto& v) { return judged_output(c, piece, v[0], v[1], v[2], v[3]); },
                                    {reference::convert<T>(data.q[i]), reference::convert<T>(data.k[i]),
                                     reference::convert<T>(data.v[i]), reference::convert<T>(data.table)},
                                    reference::convert<T>(data.d_o[i]));
    };
    const auto judge = pull(double{});
    const auto naive = pull(float{});
    dtable = sum(dtable, judge[3]);
    naive_dtable = sum(naive_dtable, naive[3]);
    all_pairs += piece.queries * piece.keys;
    const std::string at = name + ", piece " + std::to_string(i);
    // dscore = p (do.v - mean): the terms of dq and dk are of this size, whatever cancels
    const double dscore =
        largest(data.d_o[i]) * largest(data.v[i]) * std::sqrt(static_cast<double>(c.head_dim)) * std::fabs(c.scale);
    const std::size_t group = c.heads / c.kv_heads;
    check(at + " dq", judge[0], naive[0], part(r.dq, s.query_row, s.queries, q_width), piece.keys + c.head_dim,
          dscore * largest(data.k[i]));
    check(at + " dk", judge[1], naive[1], part(r.dk, s.key_row, s.keys, kv_width), piece.queries * group + c.head_dim,
          dscore * largest(data.q[i]));
    // p = exp(score - lse) carries the rounding of both
    double lse = 1;
    for (const double value : judged_lse(c, piece, data.q[i], data.k[i], data.table).data)
      if (std::isfinite(value)) lse = std::max(lse, std::fabs(value));
    check(at + " dv", judge[2], naive[2], part(r.dv, s.key_row, s.keys, kv_width), piece.queries * group,
          largest(data.d_o[i]) * lse);
    query_rows.emplace_back(s.query_row, s.queries);
    key_rows.emplace_back(s.key_row, s.keys);
  }
  CHECK_MESSAGE(others_untouched(r.dq, query_rows, q_width), name, ": dq of no segment");
  CHECK_MESSAGE(others_untouched(r.dk, key_rows, kv_width), name, ": dk of no segment");
  CHECK_MESSAGE(others_untouched(r.dv, key_rows, kv_width), name, ": dv of no segment");
  if (c.position == reference::PositionKind::buckets)
    check(name + " dtable", dtable, naive_dtable, r.dtable, all_pairs, largest(dtable) + 1);
}

/// Equal, with NaN where the other has NaN.
bool same(const std::vector<float>& a, const std::vector<float>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](float x, float y) { return x == y || (std::isnan(x) && std::isnan(y)); });
}

/// Forward, and backward where there are no rings, with the kernel forms that the case names.
template <class Mask, class Bias>
void check_case(const AttentionCase& c, const Mask& mask, const Bias& bias, const std::string& name,
                bool backward = true) {
  cpu::Device on(2);
  const AttentionData data(c, 17);
  const auto run = [&](const auto& score) {
    const auto r = run_attention(on, mask, score, data, backward);
    check_output(c, data, r, name);
    if (backward) check_gradients(c, data, r, name);
    cpu::Device alone(1);
    const auto one = run_attention(alone, mask, score, data, backward);
    for (const auto& [a, b] : {std::pair(&r.o, &one.o), std::pair(&r.dk, &one.dk)})
      CHECK_MESSAGE(same(*a, *b), name, ": the number of threads changes the result");
  };
  if (c.cap)
    run(ScoreForm<true, Bias>{static_cast<float>(c.scale), static_cast<float>(*c.cap), bias});
  else
    run(ScoreForm<false, Bias>{static_cast<float>(c.scale), 0.f, bias});
}
template <class Bias>
void check_mask(const AttentionCase& c, const Bias& bias, const std::string& name, bool backward = true) {
  const int window = static_cast<int>(c.mask.window);
  switch (c.mask.kind) {
    case reference::MaskKind::causal:
      return check_case(c, Causal{}, bias, name, backward);
    case reference::MaskKind::bidirectional:
      return check_case(c, Bidirectional{}, bias, name, backward);
    case reference::MaskKind::sliding:
      return check_case(c, SlidingWindow{window}, bias, name, backward);
    case reference::MaskKind::chunked:
      return check_case(c, Chunked{window}, bias, name, backward);
    case reference::MaskKind::prefix:
      return check_case(c, PrefixCausal{}, bias, name, backward);
  }
}

const std::vector<Piece> ragged{{.queries = 5, .keys = 5, .gap = 1},
                                {.queries = 0, .keys = 3},
                                {.queries = 1, .keys = 1, .gap = 2},
                                {.queries = 4, .keys = 11, .first_position = 7},
                                {.queries = 3, .keys = 0, .gap = 1}};
using enum reference::MaskKind;

}  // namespace

TEST_CASE("head_dim 1 to 40") {
  for (std::size_t head_dim = 1; head_dim <= 40; head_dim += head_dim < 18 ? 1 : 5)
    check_mask({.head_dim = head_dim, .pieces = ragged}, NoBias{}, "head_dim " + std::to_string(head_dim));
}
TEST_CASE("groups of heads, rows of keys apart") {
  for (const auto& [heads, kv_heads] : {std::pair<std::size_t, std::size_t>{2, 2}, {6, 2}, {4, 1}, {8, 2}, {1, 1}})
    check_mask({.heads = heads, .kv_heads = kv_heads, .head_dim = 5, .pieces = ragged}, NoBias{},
               std::to_string(heads) + " heads on " + std::to_string(kv_heads));
  check_mask({.heads = 6, .kv_heads = 2, .head_dim = 5, .pieces = ragged, .kv_gap = 7}, NoBias{}, "kv_stride", false);
}
TEST_CASE("masks around the length of a block, 64 keys") {
  for (const std::size_t keys : {63u, 64u, 65u, 129u})
    for (const auto kind : {causal, bidirectional})
      check_mask({.mask = {kind, 0}, .pieces = {{.queries = 3, .keys = keys, .first_position = keys - 3}}}, NoBias{},
                 std::to_string(keys) + " keys");
  for (const std::size_t window : {1u, 2u, 63u, 64u, 65u, 200u})
    for (const auto kind : {sliding, chunked})
      check_mask({.mask = {kind, window},
                  .pieces = {{.queries = 9, .keys = 140, .first_position = 131}, {.queries = 70, .keys = 70}}},
                 NoBias{}, (kind == sliding ? "window " : "chunk ") + std::to_string(window));
}
TEST_CASE("prefixes differ from sequence to sequence") {
  check_mask({.mask = {prefix, 0},
              .pieces = {{.queries = 6, .keys = 6, .prefix = 4, .gap = 1},
                         {.queries = 7, .keys = 7},
                         {.queries = 3, .keys = 9, .first_position = 6, .prefix = 8}}},
             NoBias{}, "prefix");
}
TEST_CASE("cross-attention: every query sees every key of its source") {
  check_mask({.heads = 3,
              .kv_heads = 3,
              .mask = {bidirectional, 0},
              .pieces = {{.queries = 4, .keys = 9}, {.queries = 2, .keys = 1, .gap = 2}, {.queries = 3, .keys = 70}}},
             NoBias{}, "cross");
}
TEST_CASE("queries that see nothing: zeros, log-sum-exp -infinity, zero gradients") {
  // positions before the first key exist nowhere; a window that ends before the queries does
  check_mask({.mask = {sliding, 3}, .pieces = {{.queries = 4, .keys = 5, .first_position = 5}}}, NoBias{}, "window");
  check_mask({.mask = {chunked, 4}, .pieces = {{.queries = 5, .keys = 4, .first_position = 2}}}, NoBias{}, "chunk");
  check_mask({.pieces = {{.queries = 3, .keys = 0}}}, NoBias{}, "no keys");
  check_mask({.pieces = {}}, NoBias{}, "no sequences");
}
TEST_CASE("soft-cap") {
  for (const double cap : {.5, 5., 50.})
    for (const double size : {1., 8.})
      check_mask({.head_dim = 16, .scale = .25, .cap = cap, .pieces = ragged, .size = size}, NoBias{},
                 "cap " + std::to_string(cap) + " size " + std::to_string(size));
}
TEST_CASE("ALiBi") {
  for (const std::size_t heads : {1u, 2u, 5u, 8u})
    check_mask({.heads = heads, .position = reference::PositionKind::alibi, .pieces = ragged}, FormulaBiasForm<ALiBi>{},
               "ALiBi, heads " + std::to_string(heads));
}
TEST_CASE("a trained bias and its gradient") {
  for (const bool both : {false, true})
    for (const int reach : {20, 6}) {  // beyond max_distance every distance shares a row
      AttentionCase c{
          .heads = 3,
          .kv_heads = 3,
          .mask = {both ? bidirectional : causal, 0},
          .position = reference::PositionKind::buckets,
          .buckets = {8, static_cast<std::size_t>(reach), both},
          .pieces = {{.queries = 30, .keys = 30, .gap = 1}, {.queries = 3, .keys = 9, .first_position = 6}}};
      const auto rows = bucket_rows(c, reach);
      const AttentionData data(c, 17);
      check_mask(c, TableBiasForm{data.flat_table.data(), rows.data(), reach}, "table");
      c.cap = 3;
      check_mask(c, TableBiasForm{data.flat_table.data(), rows.data(), reach}, "table and cap");
    }
}
TEST_CASE("a null dtable is a gradient that is not wanted") {
  cpu::Device on(1);
  const AttentionCase c{.position = reference::PositionKind::buckets, .buckets = {8, 6, false}, .pieces = ragged};
  const auto rows = bucket_rows(c, 6);
  const AttentionData data(c, 17);
  const ScoreForm<false, TableBiasForm> score{.5f, 0.f, {data.flat_table.data(), rows.data(), 6}};
  const auto all = run_attention(on, Causal{}, score, data, true);
  const auto others = run_attention(on, Causal{}, score, data, true, false);
  for (const auto& [a, b] : {std::pair(&all.dq, &others.dq), {&all.dk, &others.dk}, {&all.dv, &others.dv}})
    CHECK(same(*a, *b));
  CHECK(std::all_of(others.dtable.begin(), others.dtable.end(), [](float x) { return x == 0.f; }));
  CHECK(!same(all.dtable, others.dtable));
}
TEST_CASE("rings: keys of a window in reach + queries - 1 slots") {
  for (const std::size_t window : {1u, 5u, 64u})
    for (const std::size_t queries : {1u, 3u})
      for (const std::size_t keys : {3u, 8u, 9u, 70u, 150u})
        check_mask({.heads = 4,
                    .kv_heads = 2,
                    .mask = {sliding, window},
                    .pieces = {{.queries = queries,
                                .keys = keys,
                                .first_position = keys - queries,
                                .ring = window + queries - 1,
                                .gap = 1},
                               {.queries = 2, .keys = 2, .ring = window + 1}}},
                   NoBias{}, "window " + std::to_string(window) + " keys " + std::to_string(keys), false);
}
TEST_CASE("scores of a thousand, and equal ones") {
  check_mask({.head_dim = 16, .scale = 1, .pieces = ragged, .size = 16}, NoBias{}, "large");
  check_mask({.head_dim = 16, .scale = 1, .pieces = {{.queries = 5, .keys = 90, .first_position = 85}}, .size = 0},
             NoBias{}, "equal");
}
TEST_CASE("NaN in a query or a key it sees is not hidden") {
  cpu::Device on(1);
  const ScoreForm<false, NoBias> score;
  const std::vector<float> bad{unset, 1.f}, good{1.f, 2.f, 3.f, 4.f};
  const Segment segment{.queries = 1, .keys = 2, .first_position = 1};
  const auto hidden = [&](const float* q, const float* k) {  // in o, lse or a gradient
    std::vector<float> o(2), lse(1), dq(2), dk(4), dv(4);
    const AttendArgs<float> args{.o = o.data(),
                                 .q = q,
                                 .k = k,
                                 .v = good.data(),
                                 .lse = lse.data(),
                                 .segments = &segment,
                                 .segment_count = 1,
                                 .heads = 1,
                                 .kv_heads = 1,
                                 .head_dim = 2};
    attend(on, Causal{}, score, args);
    attend_backward(on, Causal{}, score,
                    AttendBackwardArgs<float>{
                        .dq = dq.data(), .dk = dk.data(), .dv = dv.data(), .d_o = good.data(), .forward = args});
    const float all[] = {o[0], o[1], lse[0], dq[0], dq[1], dk[0], dk[3], dv[0], dv[3]};
    return std::any_of(std::begin(all), std::end(all), [](float x) { return std::isfinite(x); });
  };
  CHECK(hidden(good.data(), good.data()));
  CHECK(!hidden(bad.data(), good.data()));
  const float infinity = std::numeric_limits<float>::infinity();
  for (const auto& k : {std::vector{1.f, 2.f, unset, 1.f}, {unset, 1.f, 1.f, 2.f}, {unset, 1.f, -infinity, 1.f}})
    CHECK(!hidden(good.data(), k.data()));
}
