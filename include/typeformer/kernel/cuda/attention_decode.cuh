/// Attention of few queries against many keys: the keys are cut into splits, which blocks go through side by side, and
/// the splits' results are added with their weights. Dao et al. 2023, "Flash-Decoding for long-context inference".
///
/// A block has the rows of all heads that share a kv head, so that keys and values are read once: row i of a tile is
/// query i / group of head i % group. How many blocks there are depends on the numbers of segments, queries and heads;
/// how many keys each has is read from the segments when the kernels run. So a launch that is captured in a graph stays
/// right while sequences grow.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "typeformer/kernel/cuda/attention_forward.cuh"
#include "typeformer/kernel/cuda/attention_work.cuh"
#include "typeformer/kernel/cuda/device.cuh"
#include "typeformer/kernel/cuda/launch.cuh"

namespace typeformer::inline TYPEFORMER_ABI::cuda::detail {

/// The tile of a number type: 16 rows, sizes from tuning.hpp.
template <class T, int depth>
struct DecodeTileOf {
  static constexpr AttentionTile tuned = tensor_core_decode_tile(depth);
  using type = TensorCoreTile<T, depth, tuned.rows, tuned.columns>;
};
template <int depth>
struct DecodeTileOf<float, depth> {
  static constexpr AttentionTile tuned = float_decode_tile(depth);
  using type = FloatTile<depth, tuned.rows, tuned.columns, tuned.thread_rows>;
};

/// What both kernels get.
template <class T>
struct DecodeTask {
  AttendArgs<T> args{};
  DecodeShape shape;
  float* sums = nullptr;     ///< [segments, kv_heads, splits, row tiles, decode_rows, head_dim], not yet divided
  float* highest = nullptr;  ///< [segments, kv_heads, splits, row tiles, decode_rows] highest score
  float* totals = nullptr;   ///< likewise: sums of the weights relative to it
  bool vectors = false;      ///< every row of every head is aligned to 16 bytes

  /// Heads that share a kv head.
  TYPEFORMER_HD int group() const { return args.heads / args.kv_heads; }
  /// The first row of a split's results.
  TYPEFORMER_HD std::int64_t result(int segment, int kv_head, int split, int row_tile) const {
    const std::int64_t splits = (std::int64_t{segment} * args.kv_heads + kv_head) * shape.splits + split;
    return (splits * shape.row_tiles + row_tile) * decode_rows;
  }
};

/// The rows of q that a tile has: from row `first` on, of the heads that share a kv head.
template <class T>
struct GroupRows {
  const T* data = nullptr;  ///< of the segment's first query and the group's first head
  int first = 0, group = 1, heads = 1, head_dim = 0;
  int count = 0;
  const __device__ __forceinline__ T* operator[](int row) const {
    return data + (std::int64_t{(first + row) / group} * heads + (first + row) % group) * head_dim;
  }
};

/// The keys that a tile of rows sees, and their parts.
struct SplitKeys {
  KeySpan span;
  int length = 0;  ///< keys of a split
  int count = 0;   ///< splits that have any

  template <class Mask, class T>
  __device__ __forceinline__ SplitKeys(const Mask& mask, const DecodeTask<T>& task, const Segment& segment,
                                       int row_tile) {
    const int first = row_tile * decode_rows / task.group();
    const int last = (row_tile * decode_rows + decode_rows - 1) / task.group();
    span = span_of(mask, segment, first, last - first + 1);
    const int keys = max(span.end - span.begin, 0);
    length = split_length(keys, task.shape.splits);
    count = (keys + length - 1) / length;
  }
  __device__ __forceinline__ int begin(int split) const { return span.begin + split * length; }
  __device__ __forceinline__ int end(int split) const { return min(begin(split) + length, span.end); }
};

/// One split of the keys for one tile of rows; see attend for the loop.
template <class Tile, class Mask, class Score, class T>
__global__ void __launch_bounds__(Tile::threads, 1)
    attend_split(std::int64_t first, Mask mask, Score score, DecodeTask<T> task) {
  // which rows, and which keys
  const AttendArgs<T>& a = task.args;
  const std::int64_t item = first + blockIdx.x, split_item = item / task.shape.row_tiles;
  const auto row_tile = static_cast<int>(item % task.shape.row_tiles);
  const auto split = static_cast<int>(split_item % task.shape.splits);
  const auto kv_head = static_cast<int>(split_item / task.shape.splits % a.kv_heads);
  const auto segment_index = static_cast<int>(split_item / task.shape.splits / a.kv_heads);
  const Segment segment = a.segments[segment_index];
  const int group = task.group(), first_row = row_tile * decode_rows, rows = segment.queries * group - first_row;
  if (rows <= 0) return;
  const SplitKeys split_keys(mask, task, segment, row_tile);
  if (split >= split_keys.count) return;
  const int begin = split_keys.begin(split), end = split_keys.end(split), first_head = kv_head * group;
  const GroupRows<T> queries{
      a.q + (segment.query_row * a.heads + first_head) * a.head_dim, first_row, group, a.heads, a.head_dim, rows};
  auto keys = key_rows(a.k, a, segment, kv_head), values = key_rows(a.v, a, segment, kv_head);
  keys.count = values.count = end;  // what lies behind belongs to others, or to nobody
  const TileMemory<Tile> memory(1);
  const auto load_keys = [&](int stage, int at) {
    load_rows<Tile, Tile::columns>(memory.other(stage, 0), keys, at, a.head_dim, task.vectors);
    load_rows<Tile, Tile::columns>(memory.other(stage, 1), values, at, a.head_dim, task.vectors);
    simt::cp_async_commit();
  };

  typename Tile::Sums sums;
  RunningSoftmax<Tile> softmax;
  load_rows<Tile, Tile::rows>(memory.own, queries, 0, a.head_dim, task.vectors);
  load_keys(0, begin);
  int stage = 0;
  for (int key = begin; key < end; key += Tile::columns, stage ^= 1) {
    simt::cp_async_wait<0>();
    __syncthreads();  // this stage has come, and everybody has left the other one
    if (key + Tile::columns < end) load_keys(stage ^ 1, key + Tile::columns);

    typename Tile::Scores scores;
    Tile::multiply(scores, memory.own, memory.other(stage, 0));
    const bool full = key >= split_keys.span.full_begin && key + Tile::columns <= min(end, split_keys.span.full_end);
    TYPEFORMER_UNROLL
    for (int r = 0; r < Tile::thread_rows; ++r) {
      const int row = first_row + Tile::row(r), query = segment.first_position + row / group;
      const auto bias = score.bias.of_head(first_head + row % group, a.heads);
      TYPEFORMER_UNROLL
      for (int c = 0; c < Tile::thread_columns; ++c)
        finish_score(scores.at(r, c), mask, score, bias, segment.mask, query, key + Tile::column(c), end, full);
    }
    softmax.add(scores, sums);
    Tile::weigh(sums, scores, memory.other(stage, 1), memory.exchange);
  }

  // this split's share of the rows that exist
  const std::int64_t result = task.result(segment_index, kv_head, split, row_tile);
  TYPEFORMER_UNROLL
  for (int r = 0; r < Tile::thread_rows; ++r) {
    const float total = lane_sum<4>(softmax.total[r]);
    const int row = Tile::row(r);
    if (row >= rows) continue;
    Tile::store_sums(task.sums + (result + row) * a.head_dim, sums, r, a.head_dim, task.vectors);
    if (lane_index() % 4 == 0) {
      task.highest[result + row] = softmax.highest[r];
      task.totals[result + row] = total;
    }
  }
}

/// o and lse of one row, from its splits in their order: with M the highest score of all, weights exp(highest - M).
template <class Mask, class T>
__global__ void __launch_bounds__(decode_combine_threads)
    combine_splits(std::int64_t first, Mask mask, DecodeTask<T> task, int most_queries) {
  const AttendArgs<T>& a = task.args;
  const std::int64_t item = first + blockIdx.x, query_item = item / a.heads;
  const auto head = static_cast<int>(item % a.heads), query = static_cast<int>(query_item % most_queries);
  const auto segment_index = static_cast<int>(query_item / most_queries);
  const Segment segment = a.segments[segment_index];
  if (query >= segment.queries) return;
  const int group = task.group(), row = query * group + head % group, row_tile = row / decode_rows;
  const SplitKeys split_keys(mask, task, segment, row_tile);
  const auto at = [&](int split) {
    return task.result(segment_index, head / group, split, row_tile) + row % decode_rows;
  };

  float highest = -INFINITY;
  for (int split = 0; split < split_keys.count; ++split) highest = fmaxf(highest, task.highest[at(split)]);
  const float base = highest == -INFINITY ? 0.f : highest;  // -inf - -inf would be NaN
  float total = 0.f;
  for (int split = 0; split < split_keys.count; ++split)
    total += expf(task.highest[at(split)] - base) * task.totals[at(split)];
  const float factor = total == 0.f ? 0.f : 1.f / total;  // 0: a row that sees nothing; NaN stays NaN

  const std::int64_t to = (segment.query_row + query) * a.heads + head;
  for (int channel = thread_index(); channel < a.head_dim; channel += decode_combine_threads) {
    float sum = 0.f;
    for (int split = 0; split < split_keys.count; ++split)
      sum += expf(task.highest[at(split)] - base) * task.sums[at(split) * a.head_dim + channel];
    a.o[to * a.head_dim + channel] = simt::narrow<T>(sum * factor);
  }
  if (a.lse && thread_index() == 0) a.lse[to] = total == 0.f ? -INFINITY : highest + logf(total);
}

/// The most queries that a segment has.
template <class T>
int most_queries(const AttendArgs<T>& a) {
  int most = 0;
  for (int i = 0; i < a.segment_count; ++i) most = std::max(most, a.host_segments[i].queries);
  return most;
}

/// attend by splits, with checked arguments, for segments of at most `queries` queries.
template <int depth, class Mask, class Score, class T>
void attend_by_splits(Device& on, const Mask& mask, const Score& score, const AttendArgs<T>& a,
                      const DecodeShape& shape, int queries) {
  constexpr std::string_view operation = "attend";
  using Tile = typename DecodeTileOf<T, depth>::type;
  static_assert(Tile::rows == decode_rows, "Tiles have decode_rows rows: results lie so in memory.");
  static_assert(TileMemory<Tile>::bytes(1) <= shared_memory_of_all, "Every GPU grants a block its shared memory.");
  DecodeTask<T> task;
  task.args = a;
  task.shape = shape;
  task.vectors = rows_aligned(a, a.q, a.k, a.v);
  const std::int64_t items = std::int64_t{a.segment_count} * a.kv_heads * task.shape.splits * task.shape.row_tiles;
  const std::int64_t results = items * decode_rows;
  task.sums = on.scratch<float>(static_cast<std::size_t>(results * (a.head_dim + 2)), operation);
  task.highest = task.sums + results * a.head_dim;
  task.totals = task.highest + results;
  const BlockShape block{dim3(Tile::threads), TileMemory<Tile>::bytes(1)};
  launch(on, operation, attend_split<Tile, Mask, Score, T>, items, block, mask, score, task);
  launch(on, operation, combine_splits<Mask, T>, std::int64_t{a.segment_count} * queries * a.heads,
         {dim3(decode_combine_threads)}, mask, task, queries);
}

}  // namespace typeformer::inline TYPEFORMER_ABI::cuda::detail
