/// Attention's forward kernel: one pass over the keys with a running softmax. Dao et al. 2022, arXiv:2205.14135,
/// algorithm 1, with the loops exchanged as in Dao 2023, arXiv:2307.08691, algorithm 1.
#pragma once
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "typeformer/kernel/cuda/attention_work.cuh"

namespace typeformer::inline TYPEFORMER_ABI::cuda::detail {

/// Shared memory of a kernel with one own tile or two, and two stages of two other tiles.
template <class Tile>
struct TileMemory {
  using Number = typename Tile::Number;
  static constexpr int own_elements = Tile::rows * Tile::row_elements;
  static constexpr int other_elements = Tile::columns * Tile::row_elements;
  static constexpr std::size_t bytes(int own_tiles) {
    return sizeof(Number) * static_cast<std::size_t>(own_tiles * own_elements + 4 * other_elements) +
           Tile::exchange_bytes;
  }
  Number* own;
  Number* others;   // [2 stages][2 tiles]
  float* exchange;  // and whatever a kernel adds behind

  __device__ __forceinline__ explicit TileMemory(int own_tiles)
      : own(simt::dynamic_shared<Number>()), others(own + own_tiles * own_elements),
        exchange(reinterpret_cast<float*>(others + 4 * other_elements)) {}
  __device__ __forceinline__ Number* other(int stage, int tile) const {
    return others + (2 * stage + tile) * other_elements;
  }
};

/// The running softmax of a thread's rows. Milakov & Gimelshein 2018, arXiv:1805.02867, algorithm 3.
template <class Tile>
struct RunningSoftmax {
  float highest[Tile::thread_rows], total[Tile::thread_rows];  // total: of this lane's columns

  __device__ __forceinline__ RunningSoftmax() {
    TYPEFORMER_UNROLL
    for (int r = 0; r < Tile::thread_rows; ++r) {
      highest[r] = -INFINITY;
      total[r] = 0.f;
    }
  }
  /// Turns scores into weights relative to the highest score so far, and what was summed before likewise.
  __device__ __forceinline__ void add(typename Tile::Scores& scores, typename Tile::Sums& sums) {
    TYPEFORMER_UNROLL
    for (int r = 0; r < Tile::thread_rows; ++r) {
      float peak = highest[r];
      TYPEFORMER_UNROLL
      for (int c = 0; c < Tile::thread_columns; ++c) peak = fmaxf(peak, scores.at(r, c));
      peak = lane_max<4>(peak);
      const float base = peak == -INFINITY ? 0.f : peak;  // -inf - -inf would be NaN
      const float rescale = Tile::exponential(highest[r] - base);
      highest[r] = peak;
      float sum = 0.f;
      TYPEFORMER_UNROLL
      for (int c = 0; c < Tile::thread_columns; ++c) {
        scores.at(r, c) = Tile::exponential(scores.at(r, c) - base);
        sum += scores.at(r, c);
      }
      total[r] = total[r] * rescale + sum;
      TYPEFORMER_UNROLL
      for (int c = 0; c < Tile::thread_channels; ++c) sums.at(r, c) *= rescale;
    }
  }
};

/// A score from a dot product: cap, bias, and -infinity where the mask lets nothing through. `full`: it lets through
/// the whole tile; `key_end`: keys from here on are not to be seen.
template <class Mask, class Score, class Bias>
__device__ __forceinline__ void finish_score(float& value, const Mask& mask, const Score& score, const Bias& bias,
                                             const MaskData& data, int query, int key, int key_end, bool full) {
  value = score.capped(value);
  if constexpr (Score::Bias::any) value += bias(query, key);
  if (!full && !(key < key_end && mask.sees(query, key, data))) value = -INFINITY;
}

/// Scores of a tile.
template <class Tile, class Mask, class Score, class Bias>
__device__ __forceinline__ void finish_scores(typename Tile::Scores& scores, const Mask& mask, const Score& score,
                                              const Bias& bias, const Segment& segment, int position, int first_key,
                                              bool full) {
  Tile::for_scores([&](int r, int c) {
    finish_score(scores.at(r, c), mask, score, bias, segment.mask, position + Tile::row(r), first_key + Tile::column(c),
                 segment.keys, full);
  });
}

/// What the forward kernel gets. A block's work item is a tile and a head.
template <class T>
struct AttendTask {
  AttendArgs<T> args{};
  const TilePlace* tiles = nullptr;  ///< on the device
  bool vectors = false;              ///< every row of every head is aligned to 16 bytes
};

template <class Tile, class Mask, class Score, class T>
__global__ void __launch_bounds__(Tile::threads, 1)
    attend(std::int64_t first, Mask mask, Score score, AttendTask<T> task) {
  // which queries of which head, and the keys they see
  const AttendArgs<T>& a = task.args;
  const std::int64_t item = first + blockIdx.x;
  const TilePlace place = task.tiles[item / a.heads];
  const auto head = static_cast<int>(item % a.heads);
  const Segment segment = a.segments[place.segment];
  const KeySpan span = span_of(mask, segment, place.first, Tile::rows);
  const auto bias = score.bias.of_head(head, a.heads);
  const int kv_head = head / (a.heads / a.kv_heads);
  const auto keys = key_rows(a.k, a, segment, kv_head), values = key_rows(a.v, a, segment, kv_head);
  const TileMemory<Tile> memory(1);
  const auto load_keys = [&](int stage, int begin) {
    load_rows<Tile, Tile::columns>(memory.other(stage, 0), keys, begin, a.head_dim, task.vectors);
    load_rows<Tile, Tile::columns>(memory.other(stage, 1), values, begin, a.head_dim, task.vectors);
    simt::cp_async_commit();
  };

  typename Tile::Sums sums;
  RunningSoftmax<Tile> softmax;
  if (span.begin < span.end) {
    load_rows<Tile, Tile::rows>(memory.own, query_rows(a.q, a, segment, head), place.first, a.head_dim, task.vectors);
    load_keys(0, span.begin);
  }
  int stage = 0;
  for (int key = span.begin; key < span.end; key += Tile::columns, stage ^= 1) {
    simt::cp_async_wait<0>();
    __syncthreads();  // this stage has come, and everybody has left the other one
    if (key + Tile::columns < span.end) load_keys(stage ^ 1, key + Tile::columns);

    typename Tile::Scores scores;
    Tile::multiply(scores, memory.own, memory.other(stage, 0));
    const bool full = key >= span.full_begin && key + Tile::columns <= span.full_end;
    finish_scores<Tile>(scores, mask, score, bias, segment, segment.first_position + place.first, key, full);
    softmax.add(scores, sums);
    Tile::weigh(sums, scores, memory.other(stage, 1), memory.exchange);
  }

  // o and lse of the rows that exist; a total of zero is a row that sees nothing, NaN stays NaN
  TYPEFORMER_UNROLL
  for (int r = 0; r < Tile::thread_rows; ++r) {
    const float total = lane_sum<4>(softmax.total[r]);
    const int query = place.first + Tile::row(r);
    if (query < segment.queries) {
      const std::int64_t at = (segment.query_row + query) * a.heads + head;
      Tile::store_row(a.o + at * a.head_dim, sums, r, total == 0.f ? 0.f : 1.f / total, a.head_dim, task.vectors);
      if (a.lse && lane_index() % 4 == 0) a.lse[at] = total == 0.f ? -INFINITY : softmax.highest[r] + logf(total);
    }
  }
}

}  // namespace typeformer::inline TYPEFORMER_ABI::cuda::detail
