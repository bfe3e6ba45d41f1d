/// Attention's backward kernels: scores are computed again from q, k and the kept log-sum-exp. One kernel keeps queries
/// and walks over keys (dq, and the gradient of a trained bias), one keeps keys and walks over queries (dk, dv); every
/// sum has one owner and a fixed order. Dao 2023, arXiv:2307.08691, algorithm 2, without its atomic sums.
#pragma once
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "typeformer/kernel/cuda/attention_forward.cuh"

namespace typeformer::inline TYPEFORMER_ABI::cuda::detail {

/// What the backward kernels get.
template <class T>
struct AttendBackwardTask {
  AttendBackwardArgs<T> args{};
  const TilePlace* tiles = nullptr;  ///< on the device
  bool vectors = false;              ///< every row of every head is aligned to 16 bytes
  float* dots = nullptr;             ///< [tokens, heads] do . o
  float* bias_sums = nullptr;        ///< [tiles, heads, 2 reach + 1] gradient of a trained bias by distance, or null
};

/// dots[token, head] = do . o, which is what the softmax subtracts from each product do . v. One block per tile and
/// head.
template <class T>
__global__ void __launch_bounds__(128) attend_row_dots(std::int64_t first, AttendBackwardTask<T> task, int tile_rows) {
  const AttendArgs<T>& a = task.args.forward;
  const std::int64_t item = first + blockIdx.x;
  const TilePlace place = task.tiles[item / a.heads];
  const auto head = static_cast<int>(item % a.heads);
  const Segment segment = a.segments[place.segment];
  const auto outputs = query_rows(static_cast<const T*>(a.o), a, segment, head);
  const auto gradients = query_rows(task.args.d_o, a, segment, head);
  for (int row = warp_index(); row < tile_rows && place.first + row < segment.queries; row += 4) {
    const T* output = outputs[place.first + row];
    const T* gradient = gradients[place.first + row];
    float sum = 0.f;
    for (int i = lane_index(); i < a.head_dim; i += 32) sum += simt::widen(output[i]) * simt::widen(gradient[i]);
    sum = lane_sum(sum);
    if (lane_index() == 0) task.dots[(segment.query_row + place.first + row) * a.heads + head] = sum;
  }
}

/// Sums of a bias' gradient by distance key - query, of one tile of queries and one head. Distances beyond reach share
/// the outermost sums and stay in registers; the others are diagonals of the tile, each added up by one thread.
template <class Tile>
struct DistanceSums {
  static constexpr int row = Tile::columns + 1;  // so that a diagonal's elements lie in different banks
  static constexpr std::size_t bytes = sizeof(float) * Tile::rows * row;
  float* sums;       // [2 reach + 1], global, this block's own; null: the gradient is not wanted
  float* gradients;  // [rows, row], shared
  int reach;
  float low = 0.f, high = 0.f;

  __device__ __forceinline__ DistanceSums(float* to, float* shared, int distance)
      : sums(to), gradients(shared), reach(distance) {
    if (!sums) return;
    for (int i = thread_index(); i <= 2 * reach; i += Tile::threads) sums[i] = 0.f;
  }
  /// scores: gradients of the scores of the queries from `position` on with the keys from first_key on.
  __device__ __forceinline__ void add(typename Tile::Scores& scores, int position, int first_key) {
    if (!sums) return;
    Tile::for_scores([&](int r, int c) {
      const int distance = first_key + Tile::column(c) - position - Tile::row(r);
      gradients[Tile::row(r) * row + Tile::column(c)] = scores.at(r, c);
      if (distance <= -reach)
        low += scores.at(r, c);
      else if (distance >= reach)
        high += scores.at(r, c);
    });
    const int begin = max(first_key - position - Tile::rows + 1, 1 - reach);
    const int end = min(first_key - position + Tile::columns, reach);
    if (begin >= end) return;
    __syncthreads();  // all gradients of the tile are there; the caller's next barrier lets them be overwritten
    static_assert(Tile::rows + Tile::columns - 1 <= Tile::threads, "a thread for each diagonal");
    const int distance = begin + thread_index();
    if (distance < end) {
      const int shift = distance + position - first_key;  // the column where row 0 meets the diagonal
      float sum = 0.f;
      for (int i = max(0, -shift); i < min(Tile::rows, Tile::columns - shift); ++i)
        sum += gradients[i * row + shift + i];
      sums[distance + reach] += sum;
    }
  }
  /// Adds what the threads kept.
  __device__ __forceinline__ void finish() {
    if (!sums) return;
    TYPEFORMER_SHARED_ARRAY(float, partials, 2 * Tile::threads / 32);
    low = lane_sum(low);
    high = lane_sum(high);
    if (lane_index() == 0) {
      partials[2 * warp_index()] = low;
      partials[2 * warp_index() + 1] = high;
    }
    __syncthreads();
    if (thread_index() != 0) return;
    for (int warp = 0; warp < Tile::threads / 32; ++warp) {
      sums[0] += partials[2 * warp];
      sums[2 * reach] += partials[2 * warp + 1];
    }
  }
};

template <class Tile, class Mask, class Score, class T>
__global__ void __launch_bounds__(Tile::threads, 1)
    attend_backward_queries(std::int64_t first, Mask mask, Score score, AttendBackwardTask<T> task) {
  // which queries of which head, and the keys they see
  const AttendArgs<T>& a = task.args.forward;
  const std::int64_t item = first + blockIdx.x;
  const TilePlace place = task.tiles[item / a.heads];
  const auto head = static_cast<int>(item % a.heads);
  const Segment segment = a.segments[place.segment];
  const int position = segment.first_position + place.first;
  const KeySpan span = span_of(mask, segment, place.first, Tile::rows);
  const auto bias = score.bias.of_head(head, a.heads);
  const int kv_head = head / (a.heads / a.kv_heads);
  const auto keys = key_rows(a.k, a, segment, kv_head), values = key_rows(a.v, a, segment, kv_head);
  const TileMemory<Tile> memory(2);
  const auto load_keys = [&](int stage, int begin) {
    load_rows<Tile, Tile::columns>(memory.other(stage, 0), keys, begin, a.head_dim, task.vectors);
    load_rows<Tile, Tile::columns>(memory.other(stage, 1), values, begin, a.head_dim, task.vectors);
    simt::cp_async_commit();
  };

  float lse[Tile::thread_rows], dot[Tile::thread_rows];
  TYPEFORMER_UNROLL
  for (int r = 0; r < Tile::thread_rows; ++r) {
    const int query = place.first + Tile::row(r);
    const std::int64_t at = (segment.query_row + query) * a.heads + head;
    lse[r] = query < segment.queries ? a.lse[at] : INFINITY;  // weights of rows that do not exist are zero
    dot[r] = query < segment.queries ? task.dots[at] : 0.f;
  }
  typename Tile::Sums sums;
  if (span.begin < span.end) {
    load_rows<Tile, Tile::rows>(memory.own, query_rows(a.q, a, segment, head), place.first, a.head_dim, task.vectors);
    load_rows<Tile, Tile::rows>(memory.own + memory.own_elements, query_rows(task.args.d_o, a, segment, head),
                                place.first, a.head_dim, task.vectors);
    load_keys(0, span.begin);
  }
  [[maybe_unused]] auto distances = [&] {
    if constexpr (Score::Bias::trained)
      return DistanceSums<Tile>(task.bias_sums ? task.bias_sums + item * (2 * score.bias.reach + 1) : nullptr,
                                memory.exchange + Tile::exchange_bytes / sizeof(float), score.bias.reach);
    else
      return 0;
  }();

  int stage = 0;
  for (int key = span.begin; key < span.end; key += Tile::columns, stage ^= 1) {
    simt::cp_async_wait<0>();
    __syncthreads();  // this stage has come, and everybody has left the other one
    if (key + Tile::columns < span.end) load_keys(stage ^ 1, key + Tile::columns);

    typename Tile::Scores scores, products;
    Tile::multiply(scores, memory.own, memory.other(stage, 0));
    Tile::multiply(products, memory.own + memory.own_elements, memory.other(stage, 1));
    const bool full = key >= span.full_begin && key + Tile::columns <= span.full_end;
    Tile::for_scores([&](int r, int c) {
      const int query = position + Tile::row(r), column = key + Tile::column(c);
      const float capped = score.capped(scores.at(r, c));
      float value = capped;
      if constexpr (Score::Bias::any) value += bias(query, column);
      const bool visible = full || (column < segment.keys && mask.sees(query, column, segment.mask));
      const float weight = visible ? Tile::exponential(value - lse[r]) : 0.f;
      products.at(r, c) = weight * (products.at(r, c) - dot[r]);
      scores.at(r, c) = products.at(r, c) * score.slope(capped);
    });
    Tile::weigh(sums, scores, memory.other(stage, 0), memory.exchange);
    if constexpr (Score::Bias::trained) distances.add(products, position, key);
  }

  TYPEFORMER_UNROLL
  for (int r = 0; r < Tile::thread_rows; ++r) {
    const int query = place.first + Tile::row(r);
    if (query < segment.queries)
      Tile::store_row(task.args.dq + ((segment.query_row + query) * a.heads + head) * a.head_dim, sums, r, 1.f,
                      a.head_dim, task.vectors);
  }
  if constexpr (Score::Bias::trained) distances.finish();
}

/// dtable[rows[distance], head] += sum over tiles of the sums by distance. One block per head; sums is overwritten.
template <class Sum>
__global__ void __launch_bounds__(128)
    add_bias_gradient(std::int64_t first, TableBiasForm bias, Sum* sums, std::int64_t tiles, int heads, Sum* dtable) {
  const auto head = static_cast<int>(first + blockIdx.x);
  const int distances = 2 * bias.reach + 1;
  Sum* own = sums + std::int64_t{head} * distances;
  for (int i = thread_index(); i < distances; i += 128) {
    Sum sum = 0;
    for (std::int64_t tile = 0; tile < tiles; ++tile) sum += own[tile * heads * distances + i];
    own[i] = sum;
  }
  __syncthreads();
  if (thread_index() != 0) return;
  for (int i = 0; i < distances; ++i) dtable[std::int64_t{bias.rows[i]} * heads + head] += own[i];
}

/// Which gradients a launch of attend_backward_keys computes.
enum class KeyGradients { both, keys, values };

template <class Tile, KeyGradients which, class Mask, class Score, class T>
__global__ void __launch_bounds__(Tile::threads, 1)
    attend_backward_keys(std::int64_t first, Mask mask, Score score, AttendBackwardTask<T> task) {
  constexpr bool of_keys = which != KeyGradients::values, of_values = which != KeyGradients::keys;
  // which keys of which head; the queries of all heads that read it are walked over
  const AttendArgs<T>& a = task.args.forward;
  const std::int64_t item = first + blockIdx.x;
  const TilePlace place = task.tiles[item / a.kv_heads];
  const auto kv_head = static_cast<int>(item % a.kv_heads);
  const Segment segment = a.segments[place.segment];
  const int group = a.heads / a.kv_heads;
  const TileMemory<Tile> memory(2);
  float* const statistics = memory.exchange + Tile::exchange_bytes / sizeof(float);  // [2 stages][lse, dots][columns]
  const auto next_seen = [&](int query) {  // the next tile of queries that sees one of the keys
    for (; query < segment.queries; query += Tile::columns) {
      const KeySpan span = span_of(mask, segment, query, Tile::columns);
      if (span.begin < place.first + Tile::rows && place.first < span.end) break;
    }
    return query;
  };
  const auto load_queries = [&](int stage, int head, int begin) {
    load_rows<Tile, Tile::columns>(memory.other(stage, 0), query_rows(a.q, a, segment, head), begin, a.head_dim,
                                   task.vectors);
    load_rows<Tile, Tile::columns>(memory.other(stage, 1), query_rows(task.args.d_o, a, segment, head), begin,
                                   a.head_dim, task.vectors);
    float* const to = statistics + stage * 2 * Tile::columns;
    static_assert(Tile::columns <= Tile::threads, "a thread for each column");
    const int i = thread_index();
    if (i < Tile::columns) {
      const bool valid = begin + i < segment.queries;
      const std::int64_t at = valid ? (segment.query_row + begin + i) * a.heads + head : 0;
      simt::cp_async<4>(to + i, a.lse + at, valid);
      simt::cp_async<4>(to + Tile::columns + i, task.dots + at, valid);
    }
    simt::cp_async_commit();
  };

  typename Tile::Sums key_sums, value_sums;
  const int first_query = next_seen(0);
  int head = kv_head * group, query = first_query, stage = 0;
  if (first_query < segment.queries) {
    load_rows<Tile, Tile::rows>(memory.own, key_rows(a.k, a, segment, kv_head), place.first, a.head_dim, task.vectors);
    load_rows<Tile, Tile::rows>(memory.own + memory.own_elements, key_rows(a.v, a, segment, kv_head), place.first,
                                a.head_dim, task.vectors);
    load_queries(0, head, query);
  }
  while (first_query < segment.queries && head < (kv_head + 1) * group) {
    int next_query = next_seen(query + Tile::columns), next_head = head;
    if (next_query >= segment.queries) {
      next_query = first_query;
      ++next_head;
    }
    simt::cp_async_wait<0>();
    __syncthreads();  // this stage has come, and everybody has left the other one
    if (next_head < (kv_head + 1) * group) load_queries(stage ^ 1, next_head, next_query);

    const KeySpan span = span_of(mask, segment, query, Tile::columns);
    const bool full = place.first >= span.full_begin && place.first + Tile::rows <= span.full_end &&
                      query + Tile::columns <= segment.queries;
    // weights first, then what needs them, so that few tiles of numbers live at a time
    typename Tile::Scores weights, sloped;  // sloped: weight times the cap's derivative
    Tile::multiply(weights, memory.own, memory.other(stage, 0));
    const auto bias = score.bias.of_head(head, a.heads);
    const float* const lse = statistics + stage * 2 * Tile::columns;
    const float* const dots = lse + Tile::columns;
    Tile::for_scores([&](int r, int c) {
      const int key = place.first + Tile::row(r), row = query + Tile::column(c),
                position = segment.first_position + row;
      const float capped = score.capped(weights.at(r, c));
      float value = capped;
      if constexpr (Score::Bias::any) value += bias(position, key);
      const bool visible =
          full || (key < segment.keys && row < segment.queries && mask.sees(position, key, segment.mask));
      weights.at(r, c) = visible ? Tile::exponential(value - lse[Tile::column(c)]) : 0.f;
      if constexpr (Score::has_softcap) sloped.at(r, c) = weights.at(r, c) * score.slope(capped);
    });
    if constexpr (of_values) Tile::weigh(value_sums, weights, memory.other(stage, 1), memory.exchange);
    if constexpr (of_keys) {
      typename Tile::Scores products;
      Tile::multiply(products, memory.own + memory.own_elements, memory.other(stage, 1));
      Tile::for_scores([&](int r, int c) {
        float factor = weights.at(r, c) * score.slope(0.f);
        if constexpr (Score::has_softcap) factor = sloped.at(r, c);
        products.at(r, c) = factor * (products.at(r, c) - dots[Tile::column(c)]);
      });
      Tile::weigh(key_sums, products, memory.other(stage, 0), memory.exchange);
    }
    head = next_head;
    query = next_query;
    stage ^= 1;
  }

  TYPEFORMER_UNROLL
  for (int r = 0; r < Tile::thread_rows; ++r) {
    const int key = place.first + Tile::row(r);
    if (key >= segment.keys) continue;
    const std::int64_t at = ((segment.key_row + key) * a.kv_heads + kv_head) * a.head_dim;
    if constexpr (of_keys) Tile::store_row(task.args.dk + at, key_sums, r, 1.f, a.head_dim, task.vectors);
    if constexpr (of_values) Tile::store_row(task.args.dv + at, value_sums, r, 1.f, a.head_dim, task.vectors);
  }
}

}  // namespace typeformer::inline TYPEFORMER_ABI::cuda::detail
