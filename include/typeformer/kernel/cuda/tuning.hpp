/// Shapes of blocks and tiles, chosen from the operation's sizes. Host code without CUDA: tests read the choices.
#pragma once
#include <cstddef>
#include <cstdint>

#include "typeformer/core/annotate.hpp"

namespace typeformer::inline TYPEFORMER_ABI::cuda::detail {

// --- rows -----------------------------------------------------------------------------------------------------------

/// Threads that share a row, and rows of a block. A row has one warp, or a block for itself.
struct RowShape {
  int threads = 32;
  int rows = 4;
};
/// `elements`: of a thread's access.
constexpr RowShape row_shape(int width, int elements) {
  const int accesses = (width + elements - 1) / elements;
  if (accesses <= 128) return {32, 4};
  const int warps = (accesses + 63) / 64;  // two accesses per thread
  return {32 * (warps < 16 ? warps : 16), 1};
}

/// Rows that are added up by one thread before partial sums are added: enough slabs to fill a GPU, few enough to add.
constexpr std::int64_t rows_per_slab(std::int64_t rows) {
  const std::int64_t even = (rows + 127) / 128;
  return even < 32 ? 32 : even;
}

// --- attention ------------------------------------------------------------------------------------------------------

/// A block keeps `rows` rows and walks over tiles of `columns` rows of the other side, `depth` channels wide.
struct AttentionTile {
  int depth = 0;
  int rows = 0;
  int columns = 0;
  int thread_rows = 0;  ///< rows of each thread; four lanes share a row
  constexpr int threads() const { return rows / (8 * thread_rows) * 32; }
};

/// Which kernel a tile is for: the forward; the backward that keeps queries; the backward that keeps keys.
enum class AttentionPass { forward, queries, keys };

/// Channels are padded to the next of these. 0: no tile is that wide.
constexpr int attention_depth(int head_dim) {
  return head_dim <= 32 ? 32 : head_dim <= 64 ? 64 : head_dim <= 128 ? 128 : head_dim <= 256 ? 256 : 0;
}

/// Tiles of bf16 on tensor cores: warps of 16 rows.
constexpr AttentionTile tensor_core_tile(int depth, AttentionPass pass) {
  const bool forward = pass == AttentionPass::forward;
  if (depth <= 128) return {depth, 64, forward ? 64 : 32, 2};
  return {depth, 64, forward ? 32 : 16, 2};
}

/// Tiles of float: rows are padded by 16 bytes, and fewer fit.
constexpr AttentionTile float_tile(int depth, AttentionPass pass) {
  if (pass == AttentionPass::forward) {
    if (depth <= 64) return {depth, 64, 32, 2};
    if (depth <= 128) return {depth, 64, 16, 2};
    return {depth, 32, 8, 1};
  }
  if (depth <= 64) return {depth, 32, 32, 1};
  if (depth <= 128) return {depth, 32, 16, 1};
  return {depth, 16, 8, 1};
}

/// The keys' and values' gradients of a wide head do not fit into registers together: one launch for each.
constexpr bool one_gradient_per_launch(int depth) { return depth > 128; }

/// Shared memory that every GPU of compute capability 8.0 and newer grants a block (8.6 and 8.9: 99 KiB).
inline constexpr std::size_t shared_memory_of_all = 99u << 10;

}  // namespace typeformer::inline TYPEFORMER_ABI::cuda::detail
