/// One call of attend on ragged segments - gaps, strides, rings, poisoned memory - and what the judge says of it.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "kernel/support.hpp"

namespace kernel_test {

/// One sequence.
struct Piece {
  std::size_t queries = 1, keys = 1;
  std::size_t first_position = 0;
  std::size_t prefix = 0;
  std::size_t ring = 0;
  std::size_t gap = 0;  ///< rows before it that belong to nobody
};

/// What to attend with, in the judge's words.
struct AttentionCase {
  std::size_t heads = 2, kv_heads = 1, head_dim = 4;
  reference::Mask mask{};
  reference::PositionKind position = reference::PositionKind::none;
  reference::Buckets buckets{};
  double scale = .5;
  std::optional<double> cap{};
  std::vector<Piece> pieces{};
  double size = 1;  ///< deviation of q and k
  std::size_t kv_gap = 0;

  template <class T>
  reference::ScoreRule<T> rule(const Piece& piece, const Numbers<T>* table) const {
    reference::ScoreRule<T> rule;
    rule.attention.heads = heads;
    rule.attention.kv_heads = kv_heads;
    rule.attention.head_dim = head_dim;
    rule.attention.scale = scale;
    rule.attention.soft_cap = cap;
    rule.layer = {mask, position, {}};
    rule.buckets = &buckets;
    rule.bucket_bias = table;
    rule.prefix = piece.prefix;
    rule.first_query = piece.first_position;
    return rule;
  }
};

/// The judge's attention with the rule for queries that see nothing: zeros, log-sum-exp -infinity.
template <class T>
Numbers<T> judged_output(const AttentionCase& c, const Piece& piece, const Numbers<T>& q, const Numbers<T>& k,
                         const Numbers<T>& v, const Numbers<T>& table) {
  const auto rule = c.rule<T>(piece, &table);
  Numbers<T> o({piece.queries, c.heads * c.head_dim});
  for (T& number : o.data) number = reference::constant<T>(0);
  for (std::size_t query = 0; query < piece.queries; ++query) {
    bool any = false;
    for (std::size_t key = 0; key < piece.keys; ++key)
      any = any || reference::sees(c.mask, piece.first_position + query, key, piece.prefix);
    for (std::size_t head = 0; any && head < c.heads; ++head)
      reference::attend_one(rule, q.row(query) + head * c.head_dim, k, v, head, piece.first_position + query,
                            o.row(query) + head * c.head_dim);
  }
  return o;
}
inline Numbers<double> judged_lse(const AttentionCase& c, const Piece& piece, const Numbers<double>& q,
                                  const Numbers<double>& k, const Numbers<double>& table) {
  const auto rule = c.rule<double>(piece, &table);
  Numbers<double> lse({piece.queries, c.heads});
  for (std::size_t query = 0; query < piece.queries; ++query)
    for (std::size_t head = 0; head < c.heads; ++head) {
      std::vector<double> scores;
      double highest = -std::numeric_limits<double>::infinity(), sum = 0;
      const std::size_t at = piece.first_position + query;
      for (std::size_t key = 0; key < piece.keys; ++key)
        if (reference::sees(c.mask, at, key, piece.prefix)) {
          const std::size_t column = head / (c.heads / c.kv_heads) * c.head_dim;
          scores.push_back(
              reference::score(rule, q.row(query) + head * c.head_dim, k.row(key) + column, head, at, key));
          highest = std::max(highest, scores.back());
        }
      for (const double score : scores) sum += std::exp(score - highest);
      lse(query, head) = scores.empty() ? highest : highest + std::log(sum);
    }
  return lse;
}

/// The tensors of a case and where its rows lie.
struct AttentionData {
  AttentionCase c;
  std::vector<Numbers<double>> q, k, v, d_o;  // per piece
  Numbers<double> table;
  std::vector<Segment> segments;
  std::size_t query_rows = 0, key_rows = 0, kv_stride = 0;
  std::vector<float> flat_q, flat_k, flat_v, flat_do, flat_table;

  AttentionData(const AttentionCase& wanted, std::uint64_t seed) : c(wanted), table({c.buckets.count, c.heads}) {
    Random random(seed);
    kv_stride = c.kv_heads * c.head_dim + c.kv_gap;
    table = draw(random, c.buckets.count, c.heads, 1.5);
    flat_table = floats(table);
    for (const Piece& piece : c.pieces) {
      q.push_back(draw(random, piece.queries, c.heads * c.head_dim, c.size));
      k.push_back(draw(random, piece.keys, c.kv_heads * c.head_dim, c.size));
      v.push_back(draw(random, piece.keys, c.kv_heads * c.head_dim));
      d_o.push_back(draw(random, piece.queries, c.heads * c.head_dim));
      add_segment(piece);
    }
    place();
  }

 private:
  void add_segment(const Piece& piece) {
    query_rows += piece.gap;
    key_rows += 2 * piece.gap;
    segments.push_back({.query_row = static_cast<std::int64_t>(query_rows),
                        .key_row = static_cast<std::int64_t>(key_rows),
                        .queries = static_cast<int>(piece.queries),
                        .keys = static_cast<int>(piece.keys),
                        .first_position = static_cast<int>(piece.first_position),
                        .ring = static_cast<int>(piece.ring),
                        .mask = {.prefix = static_cast<int>(piece.prefix)}});
    query_rows += piece.queries;
    key_rows += piece.ring ? piece.ring : piece.keys;
  }
  /// Every row where its segment says, NaN elsewhere; a ring holds the newest keys only.
  void place() {
    flat_q.assign(query_rows * c.heads * c.head_dim, unset);
    flat_do = flat_q;
    flat_k.assign(key_rows * kv_stride, unset);
    flat_v = flat_k;
    for (std::size_t i = 0; i < segments.size(); ++i) {
      const Segment& s = segments[i];
      const auto at = static_cast<std::size_t>(s.query_row) * c.heads * c.head_dim;
      std::copy(q[i].data.begin(), q[i].data.end(), flat_q.begin() + static_cast<std::ptrdiff_t>(at));
      std::copy(d_o[i].data.begin(), d_o[i].data.end(), flat_do.begin() + static_cast<std::ptrdiff_t>(at));
      for (std::size_t key = 0; key < k[i].rows(); ++key) {
        const std::size_t slot = s.ring ? key % static_cast<std::size_t>(s.ring) : key;
        const auto row = (static_cast<std::size_t>(s.key_row) + slot) * kv_stride;
        std::copy_n(k[i].row(key), k[i].columns(), flat_k.begin() + static_cast<std::ptrdiff_t>(row));
        std::copy_n(v[i].row(key), v[i].columns(), flat_v.begin() + static_cast<std::ptrdiff_t>(row));
      }
    }
  }
};

/// Numbers of one segment's rows, `width` a row.
inline std::vector<float> part(const std::vector<float>& flat, std::int64_t row, int rows, std::size_t width) {
  const auto from = flat.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(row) * width);
  return {from, from + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(rows) * width)};
}
/// Whether the rows that belong to no segment still are NaN.
inline bool others_untouched(const std::vector<float>& flat, const std::vector<std::pair<std::int64_t, int>>& rows,
                             std::size_t width) {
  std::vector<bool> owned(flat.size() / width);
  for (const auto& [first, count] : rows)
    for (int i = 0; i < count; ++i) owned[static_cast<std::size_t>(first + i)] = true;
  for (std::size_t i = 0; i < flat.size(); ++i)
    if (!owned[i / width] && !std::isnan(flat[i])) return false;
  return true;
}

/// T5's rows for every distance that occurs.
inline std::vector<std::int32_t> bucket_rows(const AttentionCase& c, int reach) {
  std::vector<std::int32_t> rows;
  for (int relative = -reach; relative <= reach; ++relative)
    rows.push_back(static_cast<std::int32_t>(
        relative < 0 ? reference::bucket_of(c.buckets, static_cast<std::size_t>(-relative), 0)
                     : reference::bucket_of(c.buckets, 0, static_cast<std::size_t>(relative))));
  return rows;
}

/// What attend and attend_backward gave.
struct AttentionResult {
  std::vector<float> o, lse, dq, dk, dv, dtable;
};

/// Runs the operations. `bias`: the score's bias form; `backward`: dense k and v without rings are needed.
template <class Mask, class Score>
AttentionResult run_attention(cpu::Device& on, const Mask& mask, const Score& score, const AttentionData& data,
                              bool backward, bool table_gradient = true) {
  const AttentionCase& c = data.c;
  AttentionResult r;
  r.o.assign(data.flat_q.size(), unset);
  r.lse.assign(data.query_rows * c.heads, unset);
  const AttendArgs<float> args{.o = r.o.data(),
                               .q = data.flat_q.data(),
                               .k = data.flat_k.data(),
                               .v = data.flat_v.data(),
                               .lse = r.lse.data(),
                               .segments = data.segments.data(),
                               .segment_count = static_cast<int>(data.segments.size()),
                               .heads = static_cast<int>(c.heads),
                               .kv_heads = static_cast<int>(c.kv_heads),
                               .head_dim = static_cast<int>(c.head_dim),
                               .kv_stride = static_cast<std::int64_t>(c.kv_gap ? data.kv_stride : 0)};
  attend(on, mask, score, args);
  if (!backward) return r;
  r.dq.assign(data.flat_q.size(), unset);
  r.dk.assign(data.key_rows * c.kv_heads * c.head_dim, unset);
  r.dv = r.dk;
  r.dtable.assign(data.flat_table.size(), 0.f);
  attend_backward(on, mask, score,
                  AttendBackwardArgs<float>{.dq = r.dq.data(),
                                            .dk = r.dk.data(),
                                            .dv = r.dv.data(),
                                            .dtable = table_gradient ? r.dtable.data() : nullptr,
                                            .d_o = data.flat_do.data(),
                                            .forward = args});
  return r;
}

/// The largest score before the softmax: its rounding, exponentiated, is an error of every probability.
inline double largest_score(const AttentionCase& c, const AttentionData& data) {
  double result = 1;
  for (std::size_t i = 0; i < data.q.size(); ++i)
    result = std::max(result, largest(data.q[i]) * largest(data.k[i]) * std::fabs(c.scale) *
                                  std::sqrt(static_cast<double>(c.head_dim)));
  return result;
}

inline void check_output(const AttentionCase& c, const AttentionData& data, const AttentionResult& r,
                         const std::string& name) {
  const std::size_t width = c.heads * c.head_dim;
  std::vector<std::pair<std::int64_t, int>> rows;
  for (std::size_t i = 0; i < c.pieces.size(); ++i) {
    const Piece& piece = c.pieces[i];
    const Segment& s = data.segments[i];
    const std::string at = name + ", piece " + std::to_string(i);
    const auto judge = judged_output<double>(c, piece, data.q[i], data.k[i], data.v[i], data.table);
    const auto naive =
        judged_output<float>(c, piece, reference::convert<float>(data.q[i]), reference::convert<float>(data.k[i]),
                             reference::convert<float>(data.v[i]), reference::convert<float>(data.table));
    const std::size_t terms = std::max(c.head_dim, piece.keys);
    check(at + " o", judge, naive, part(r.o, s.query_row, s.queries, width), terms, largest(data.v[i]));
    const auto lse = judged_lse(c, piece, data.q[i], data.k[i], data.table);
    const auto ours = part(r.lse, s.query_row, s.queries, c.heads);
    for (std::size_t e = 0; e < ours.size(); ++e) {
      const double bound = tolerance::f32_roundoff * std::sqrt(static_cast<double>(terms)) * 4 *
                           (largest_score(c, data) + std::fabs(lse.data[e]));
      const bool equal =
          std::isinf(lse.data[e]) ? double{ours[e]} == lse.data[e] : std::fabs(double{ours[e]} - lse.data[e]) <= bound;
      CHECK_MESSAGE(equal, at, " lse ", e, ": ", ours[e], ", judge ", lse.data[e], ", bound ", bound);
    }
    rows.emplace_back(s.query_row, s.queries);
  }
  CHECK_MESSAGE(others_untouched(r.o, rows, width), name, ": writes rows of no segment");
  CHECK_MESSAGE(others_untouched(r.lse, rows, c.heads), name, ": writes log-sum-exps of no segment");
}

}  // namespace kernel_test
