/// attend and its backward on the CPU: one query at a time over blocks of keys, with a running softmax; no T x T
/// matrix.
#pragma once
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "typeformer/kernel/contract.hpp"
#include "typeformer/kernel/cpu/device.hpp"
#include "typeformer/kernel/cpu/lanes.hpp"

namespace typeformer::inline TYPEFORMER_ABI::cpu {
namespace detail {

/// The keys or values of one segment and one head.
struct KeyRows {
  const float* data;
  std::int64_t stride;
  int ring;
  const float* operator[](int key) const { return data + (ring ? key % ring : key) * stride; }
};
/// The segment's rows of the keys or values `data`, for one head of them.
inline KeyRows rows_of(const float* data, const AttendArgs<float>& a, const Segment& s, int kv_head) {
  const std::int64_t stride = a.kv_stride ? a.kv_stride : std::int64_t{a.kv_heads} * a.head_dim;
  return {data + s.key_row * stride + kv_head * a.head_dim, stride, s.ring};
}

/// The softmax over one query's keys, block by block: Milakov & Gimelshein 2018, arXiv:1805.02867, algorithm 3.
template <class Mask, class Score>
class QueryAttention {
 public:
  static constexpr int block = 64;
  QueryAttention(const Mask& mask, const Score& score, const AttendArgs<float>& args, const Segment& segment, int head)
      : mask_(mask), score_(score), bias_(score.bias.of_head(head, args.heads)), segment_(segment), dim_(args.head_dim),
        keys_(rows_of(args.k, args, segment, head / (args.heads / args.kv_heads))),
        values_(rows_of(args.v, args, segment, head / (args.heads / args.kv_heads))) {}

  /// Writes the head's output for the query at `position`; returns the log-sum-exp of its scores (-infinity: sees
  /// nothing).
  float run(const float* q, int position, float* o) {
    const KeySpan span = key_span(mask_, position, position, segment_.keys, segment_.mask);
    float highest = -std::numeric_limits<float>::infinity(), sum = 0.f;
    std::fill(o, o + dim_, 0.f);
    for (int first = span.begin; first < span.end; first += block)
      add_block(q, position, first, std::min(first + block, span.end), o, highest, sum);
    if (sum == 0.f) return -std::numeric_limits<float>::infinity();
    for (int i = 0; i < dim_; ++i) o[i] /= sum;
    return highest + std::log(sum);
  }

 private:
  void add_block(const float* q, int position, int first, int last, float* o, float& highest, float& sum) {
    float scores[block];
    float peak = highest;
    for (int key = first; key < last; ++key) {
      float& s = scores[key - first];
      if (mask_.sees(position, key, segment_.mask)) {
        s = score_.capped(dot(q, keys_[key], dim_)) + bias_(position, key);
        if (s > peak || std::isnan(s)) peak = s;  // a NaN stays the peak: it must not pass for 'sees nothing'
      } else {
        s = -std::numeric_limits<float>::infinity();
      }
    }
    if (peak == -std::numeric_limits<float>::infinity()) return;
    if (peak > highest) {
      const float rescale = std::exp(highest - peak);
      sum *= rescale;
      for (int i = 0; i < dim_; ++i) o[i] *= rescale;
      highest = peak;
    }
    for (int key = first; key < last; ++key) {
      const float p = std::exp(scores[key - first] - peak);
      sum += p;
      if (p != 0.f) add_scaled(o, p, values_[key], dim_);
    }
  }

  const Mask& mask_;
  const Score& score_;
  decltype(std::declval<const Score&>().bias.of_head(0, 0)) bias_;
  const Segment& segment_;
  int dim_;
  KeyRows keys_, values_;
};

}  // namespace detail

/// o = softmax(score(q k^T)) v over the keys that the mask lets each query see, and the log-sum-exp; see AttendArgs. A
/// key's product and exponential are computed once; nothing of the size of queries times keys is kept.
template <class Mask, class Score>
void attend(Device& on, const Mask& mask, const Score& score, const AttendArgs<float>& a) {
  for (int index = 0; index < a.segment_count; ++index) {
    const Segment& segment = a.segments[index];
    on.parallel(std::int64_t{segment.queries} * a.heads, 1, [&](std::int64_t first, std::int64_t last) {
      for (auto task = first; task < last; ++task) {
        const int head = static_cast<int>(task % a.heads), query = static_cast<int>(task / a.heads);
        const std::int64_t row = segment.query_row + query, at = (row * a.heads + head) * a.head_dim;
        detail::QueryAttention<Mask, Score> attention(mask, score, a, segment, head);
        const float lse = attention.run(a.q + at, segment.first_position + query, a.o + at);
        if (a.lse) a.lse[row * a.heads + head] = lse;
      }
    });
  }
}

namespace detail {

/// The gradients through one query head of one segment: dq is assigned, dk, dv and dtable are added to.
template <class Mask, class Score>
void head_backward(const Mask& mask, const Score& score, const AttendBackwardArgs<float>& a, const Segment& s,
                   int head) {
  const AttendArgs<float>& f = a.forward;
  const int kv_head = head / (f.heads / f.kv_heads), dim = f.head_dim;
  const std::int64_t kv_width = std::int64_t{f.kv_heads} * dim;
  const KeyRows keys = rows_of(f.k, f, s, kv_head), values = rows_of(f.v, f, s, kv_head);
  const auto bias = score.bias.of_head(head, f.heads);
  for (int query = 0; query < s.queries; ++query) {
    const std::int64_t row = s.query_row + query, at = (row * f.heads + head) * dim;
    const float* q = f.q + at;
    const float* d_o = a.d_o + at;
    float* dq = a.dq + at;
    std::fill(dq, dq + dim, 0.f);
    const float lse = f.lse[row * f.heads + head];
    if (lse == -std::numeric_limits<float>::infinity()) continue;
    const float weighted = dot(d_o, f.o + at, dim);  // sum_j p_j (do . v_j)
    const int position = s.first_position + query;
    const KeySpan span = key_span(mask, position, position, s.keys, s.mask);
    for (int key = span.begin; key < span.end; ++key) {
      if (!mask.sees(position, key, s.mask)) continue;
      const float capped = score.capped(dot(q, keys[key], dim));
      const float p = std::exp(capped + bias(position, key) - lse);
      const float dscore = p * (dot(d_o, values[key], dim) - weighted), ddot = dscore * score.slope(capped);
      if constexpr (Score::Bias::trained)
        if (a.dtable) a.dtable[bias.row(position, key) * f.heads + head] += dscore;
      add_scaled(dq, ddot, keys[key], dim);
      const std::int64_t to = (s.key_row + key) * kv_width + kv_head * dim;
      add_scaled(a.dk + to, ddot, q, dim);
      add_scaled(a.dv + to, p, d_o, dim);
    }
  }
}

}  // namespace detail

/// dq, dk, dv (=) and the gradient of a trained bias' table (+=); see AttendBackwardArgs. Heads of k and v are shared
/// out to the threads, so every sum has one owner and a fixed order.
template <class Mask, class Score>
void attend_backward(Device& on, const Mask& mask, const Score& score, const AttendBackwardArgs<float>& a) {
  const AttendArgs<float>& f = a.forward;
  const int group = f.heads / f.kv_heads;
  on.parallel(f.kv_heads, 1, [&](std::int64_t first, std::int64_t last) {
    for (auto kv_head = first; kv_head < last; ++kv_head)
      for (int index = 0; index < f.segment_count; ++index) {
        const Segment& s = f.segments[index];
        for (int key = 0; key < s.keys; ++key) {
          const std::int64_t at = ((s.key_row + key) * f.kv_heads + kv_head) * f.head_dim;
          std::fill_n(a.dk + at, f.head_dim, 0.f);
          std::fill_n(a.dv + at, f.head_dim, 0.f);
        }
        for (int h = 0; h < group; ++h) detail::head_backward(mask, score, a, s, static_cast<int>(kv_head) * group + h);
      }
  });
}

}  // namespace typeformer::inline TYPEFORMER_ABI::cpu
