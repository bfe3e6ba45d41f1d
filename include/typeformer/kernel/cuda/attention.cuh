/// attend and its backward on CUDA.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "typeformer/kernel/contract.hpp"
#include "typeformer/kernel/cuda/attention_backward.cuh"
#include "typeformer/kernel/cuda/attention_decode.cuh"
#include "typeformer/kernel/cuda/attention_forward.cuh"
#include "typeformer/kernel/cuda/device.cuh"
#include "typeformer/kernel/cuda/launch.cuh"

namespace typeformer::inline TYPEFORMER_ABI::cuda {
namespace detail {

/// Throws Error where the backward could not work or two segments share keys, whose gradients they would both write.
template <class T>
void check_attend_backward(std::string_view operation, const AttendBackwardArgs<T>& b) {
  const AttendArgs<T>& a = b.forward;
  std::vector<const Segment*> by_key;
  for (int i = 0; i < a.segment_count; ++i) {
    const Segment& s = a.host_segments[i];
    require(s.ring == 0, operation, "segment " + std::to_string(i), "no ring", std::to_string(s.ring) + " slots");
    require(s.queries == 0 || (b.dq && b.d_o && a.lse), operation, "dq, do, lse", "arrays", "null");
    require(s.keys == 0 || (b.dk && b.dv), operation, "dk, dv", "arrays", "null");
    if (s.keys > 0) by_key.push_back(&s);
  }
  std::sort(by_key.begin(), by_key.end(), [](const Segment* x, const Segment* y) { return x->key_row < y->key_row; });
  for (std::size_t i = 1; i < by_key.size(); ++i)
    require(by_key[i - 1]->key_row + by_key[i - 1]->keys <= by_key[i]->key_row, operation, "segments",
            "keys of their own for each", "two that share key row " + std::to_string(by_key[i]->key_row));
}

inline void check_head_dim(std::string_view operation, int head_dim, int of_the_type) {
  require(head_dim == of_the_type, operation, "head_dim",
          std::to_string(of_the_type) + ", as the type of the arguments says", std::to_string(head_dim));
}

/// Rows of q that segments reach.
template <class T>
std::int64_t query_row_count(const AttendArgs<T>& a) {
  std::int64_t rows = 0;
  for (int i = 0; i < a.segment_count; ++i) {
    const Segment& s = a.host_segments[i];
    rows = std::max(rows, s.query_row + s.queries);
  }
  return rows;
}

/// The forward with checked arguments and tiles of `depth` channels.
template <int depth, class Mask, class Score, class T>
void attend_at(Device& on, const Mask& mask, const Score& score, const AttendArgs<T>& a) {
  constexpr std::string_view operation = "attend";
  const int queries = most_queries(a);
  const DecodeShape by_splits = decode_shape(a.segment_count, a.heads, a.kv_heads, queries);
  if (by_splits.splits > 0) return attend_by_splits<depth>(on, mask, score, a, by_splits, queries);
  using Tile = typename TileOf<T, depth, AttentionPass::forward>::type;
  const TileList list = place_tiles(on, operation, a, Tile::rows, false);
  const bool vectors = rows_aligned(a, a.q, a.k, a.v, a.o);
  const AttendTask<T> task{a, list.tiles, vectors};
  const BlockShape block{dim3(Tile::threads), TileMemory<Tile>::bytes(1)};
  launch(on, operation, attend<Tile, Mask, Score, T>, list.count * a.heads, block, mask, score, task);
}

/// do . o of every row, dq, and the gradient of a trained bias.
template <int depth, class Mask, class Score, class T>
void backward_to_queries(Device& on, const Mask& mask, const Score& score, AttendBackwardTask<T>& task) {
  constexpr std::string_view operation = "attend_backward";
  using Tile = typename TileOf<T, depth, AttentionPass::queries>::type;
  AttendBackwardArgs<T>& b = task.args;
  AttendArgs<T>& a = b.forward;
  const TileList list = place_tiles(on, operation, a, Tile::rows, false);
  const std::int64_t items = list.count * a.heads, dots = query_row_count(a) * a.heads;
  std::int64_t sums = 0;
  if constexpr (Score::Bias::trained) sums = b.dtable ? items * (2 * score.bias.reach + 1) : 0;
  task.dots = on.scratch<float>(static_cast<std::size_t>(dots + sums), operation);
  task.bias_sums = sums ? task.dots + dots : nullptr;
  task.tiles = list.tiles;
  launch(on, operation, attend_row_dots<T>, items, {dim3(128)}, task, int{Tile::rows});
  std::size_t bytes = TileMemory<Tile>::bytes(2);
  if constexpr (Score::Bias::trained) bytes += DistanceSums<Tile>::bytes;
  launch(on, operation, attend_backward_queries<Tile, Mask, Score, T>, items, {dim3(Tile::threads), bytes}, mask, score,
         task);
  if constexpr (Score::Bias::trained)
    if (task.bias_sums)
      launch(on, operation, add_bias_gradient<float>, a.heads, {dim3(128)}, score.bias, task.bias_sums, list.count,
             a.heads, b.dtable);
}

/// dk and dv.
template <int depth, class Mask, class Score, class T>
void backward_to_keys(Device& on, const Mask& mask, const Score& score, AttendBackwardTask<T>& task) {
  constexpr std::string_view operation = "attend_backward";
  using Tile = typename TileOf<T, depth, AttentionPass::keys>::type;
  AttendArgs<T>& a = task.args.forward;
  const TileList list = place_tiles(on, operation, a, Tile::rows, true);
  task.tiles = list.tiles;
  const BlockShape block{dim3(Tile::threads), TileMemory<Tile>::bytes(2) + 4 * Tile::columns * sizeof(float)};
  const auto run = [&](auto kernel) {
    launch(on, operation, kernel, list.count * a.kv_heads, block, mask, score, task);
  };
  if constexpr (one_gradient_per_launch(depth)) {
    run(attend_backward_keys<Tile, KeyGradients::keys, Mask, Score, T>);
    run(attend_backward_keys<Tile, KeyGradients::values, Mask, Score, T>);
  } else {
    run(attend_backward_keys<Tile, KeyGradients::both, Mask, Score, T>);
  }
}

/// The backward with checked arguments and tiles of `depth` channels.
template <int depth, class Mask, class Score, class T>
void attend_backward_at(Device& on, const Mask& mask, const Score& score, const AttendBackwardArgs<T>& b) {
  const AttendArgs<T>& a = b.forward;
  AttendBackwardTask<T> task;
  task.args = b;
  task.vectors = rows_aligned(a, a.q, a.k, a.v, a.o, b.dq, b.dk, b.dv, b.d_o);
  backward_to_queries<depth>(on, mask, score, task);
  backward_to_keys<depth>(on, mask, score, task);
}

}  // namespace detail

/// o = softmax(score(q k^T)) v over the keys that the mask lets each query see, and the log-sum-exp; see AttendArgs.
/// T float multiplies in float (no TF32), bf16 on tensor cores; sums are float. head_dim is 1 to 256.
/// Key tiles outside mask.span() are skipped, full ones are not tested. Where every segment has few queries, blocks
/// share its keys (attention_decode.cuh). Throws Error on arguments that do not fit together.
template <MaskPolicy Mask, class Score, Number T>
void attend(Device& on, const Mask& mask, const Score& score, const AttendArgs<T>& args) {
  AttendArgs<T> a = args;
  detail::check_attend("attend", a);
  detail::with_depth(a.head_dim, [&](auto depth) { detail::attend_at<depth()>(on, mask, score, a); });
}
/// The same, with kernels for one head_dim.
template <MaskPolicy Mask, class Score, Number T, int head_dim>
void attend(Device& on, const Mask& mask, const Score& score, const AttendArgsOf<T, head_dim>& args) {
  AttendArgs<T> a = args;
  detail::check_attend("attend", a);
  detail::check_head_dim("attend", a.head_dim, head_dim);
  detail::attend_at<detail::attention_depth(head_dim)>(on, mask, score, a);
}

/// dq, dk, dv (=) and the gradient of a trained bias' table (+=, or not at all when dtable is null); see
/// AttendBackwardArgs. Deterministic. Segments have no rings, and each has keys of its own. Throws Error otherwise, and
/// where a GPU grants a block less shared memory than a trained bias beside a head_dim above 128 takes in bf16: 100.25
/// KiB, more than the 99 of compute capability 8.6 and 8.9.
template <MaskPolicy Mask, class Score, Number T>
void attend_backward(Device& on, const Mask& mask, const Score& score, const AttendBackwardArgs<T>& args) {
  AttendBackwardArgs<T> b = args;
  detail::check_attend("attend_backward", b.forward);
  detail::check_attend_backward("attend_backward", b);
  detail::with_depth(b.forward.head_dim, [&](auto depth) { detail::attend_backward_at<depth()>(on, mask, score, b); });
}
/// The same, with kernels for one head_dim.
template <MaskPolicy Mask, class Score, Number T, int head_dim>
void attend_backward(Device& on, const Mask& mask, const Score& score, const AttendBackwardArgsOf<T, head_dim>& args) {
  AttendBackwardArgs<T> b = args;
  detail::check_attend("attend_backward", b.forward);
  detail::check_head_dim("attend_backward", b.forward.head_dim, head_dim);
  detail::check_attend_backward("attend_backward", b);
  detail::attend_backward_at<detail::attention_depth(head_dim)>(on, mask, score, b);
}

}  // namespace typeformer::inline TYPEFORMER_ABI::cuda
