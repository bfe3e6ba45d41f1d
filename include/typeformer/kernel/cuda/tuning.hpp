/// Shapes of blocks and tiles, chosen from the operation's sizes. Host code without CUDA: tests read the choices.
#pragma once
#include <cstddef>
#include <cstdint>

#include "typeformer/core/annotate.hpp"

namespace typeformer::inline TYPEFORMER_ABI::cuda::detail {

// --- rows -----------------------------------------------------------------------------------------------------------

/// Most elements of a row, and most positions of a sequence: kernels count them with int, and a step beyond the end
/// must not overflow. Rows themselves, and what they begin with, have 64 bits.
inline constexpr int largest_width = 1 << 29;
inline constexpr int largest_length = 1 << 30;

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

// --- embeddings -----------------------------------------------------------------------------------------------------

/// gather_rows_backward: a block adds up `columns` columns of the rows of one part of all indices.
struct GatherBackwardShape {
  int threads = 128;
  int columns = 128;  ///< an access of each thread
  int column_blocks = 1;
  int parts = 1;  ///< a power of two
};
inline constexpr int gather_most_threads = 256;
inline constexpr int gather_indices_per_thread = 4;  ///< looked at between two barriers
inline constexpr int gather_tile = gather_most_threads * gather_indices_per_thread;
inline constexpr int gather_list = 2 * gather_tile;  ///< tokens that are listed before their rows are added
/// Every block reads all indices: no more parts than fill a GPU, and four tokens for each, whose rows are loaded
/// together.
constexpr GatherBackwardShape gather_backward_shape(std::int64_t tokens, int width, int elements) {
  const int accesses = (width + elements - 1) / elements;
  const int threads = accesses <= 128 ? 128 : gather_most_threads;
  const int column_blocks = (accesses + threads - 1) / threads;
  int parts = 1;
  while (4 * parts < tokens && parts * column_blocks < 1024) parts *= 2;
  return {threads, threads * elements, column_blocks, parts};
}

// --- heads ----------------------------------------------------------------------------------------------------------

inline constexpr int heads_threads = 128;  ///< of a block
inline constexpr int largest_head_dim = 256;
inline constexpr int scalar_head_slots = 4;         ///< pairs of a lane where accesses have one element
inline constexpr int all_heads_most_threads = 256;  ///< more would leave a thread too few registers

/// What prepare_heads works on; `elements`: of a thread's access.
struct HeadsSizes {
  std::int64_t tokens = 0;
  int heads = 1, kv_heads = 1, head_dim = 1, elements = 1;
};
/// Lanes that share a head: one for each two accesses, as far as a warp reaches.
constexpr int heads_lanes(const HeadsSizes& sizes) {
  const int slots = (sizes.head_dim + 2 * sizes.elements - 1) / (2 * sizes.elements);
  int lanes = 1;
  while (lanes < slots && lanes < 32) lanes *= 2;
  return lanes;
}
/// Threads of a token's block where statistics go over all heads: two heads of q, k or v for each group of lanes.
constexpr int all_heads_threads(const HeadsSizes& sizes) {
  const std::int64_t wanted = (std::int64_t{sizes.heads} + 2 * sizes.kv_heads + 1) / 2 * heads_lanes(sizes);
  int threads = 32;
  while (threads < wanted && threads < all_heads_most_threads) threads *= 2;
  return threads;
}

/// `lanes` neighboring threads of a block share a head; the block goes through `tokens` tokens and `heads` heads of
/// each, which share the angles.
struct HeadsShape {
  int lanes = 32;
  int heads = 1;
  std::int64_t tokens = 4;
  constexpr int groups() const { return heads_threads / lanes; }
};
/// As many heads share angles as leave blocks enough to fill a GPU.
constexpr HeadsShape heads_shape(const HeadsSizes& sizes) {
  HeadsShape shape{heads_lanes(sizes), 8, 0};
  shape.tokens = shape.groups();
  const std::int64_t slabs = (sizes.tokens + shape.tokens - 1) / shape.tokens;
  const std::int64_t heads = std::int64_t{sizes.heads} + 2 * sizes.kv_heads;
  while (shape.heads > 1 && slabs * heads < 2048 * shape.heads) shape.heads /= 2;
  return shape;
}
/// The backward's: with gradients of gains a block sums over several tokens, so that the partial sums stay few; each
/// head its own where gains are (`own_gain`).
constexpr HeadsShape heads_backward_shape(const HeadsSizes& sizes, bool sums, bool own_gain) {
  HeadsShape shape = heads_shape(sizes);
  if (!sums) return shape;
  if (own_gain) shape.heads = 1;
  const std::int64_t groups = shape.groups(), each = (sizes.tokens + 256 * groups - 1) / (256 * groups);
  shape.tokens = groups * (each < 4 ? 4 : each);
  return shape;
}

// --- feed-forward ---------------------------------------------------------------------------------------------------

/// A block works on a piece of a row, an access of each thread, so that one row keeps many blocks busy; or on whole
/// narrow rows, a warp each.
struct ActivationShape {
  int threads = 32;  ///< that share a row
  int rows = 4;
  int pieces = 1;  ///< of a row
};
inline constexpr int activation_most_threads = 256;
constexpr ActivationShape activation_shape(int width, int elements) {
  const int accesses = (width + elements - 1) / elements;
  if (accesses <= 128) return {32, 4, 1};
  const int pieces = (accesses + activation_most_threads - 1) / activation_most_threads;
  const int even = (accesses + pieces - 1) / pieces;
  return {(even + 31) / 32 * 32, 1, pieces};
}

// --- arrays ---------------------------------------------------------------------------------------------------------

/// Threads of a block that goes over an array, an access each.
inline constexpr int flat_threads = 256;

/// Blocks that sum_of_squares adds up, by the array alone: the same array gives the same sum on every GPU.
constexpr int sum_blocks(std::int64_t accesses) {
  const std::int64_t blocks = (accesses + 4 * flat_threads - 1) / (4 * flat_threads);  // 4 accesses per thread or more
  return blocks < 1 ? 1 : blocks < 1024 ? static_cast<int>(blocks) : 1024;
}

// --- loss -----------------------------------------------------------------------------------------------------------

/// Threads of cross_entropy's block, which has a row for itself: about four accesses each, as far as a block goes. Few
/// large blocks rather than many small ones: rows that are worked on should still be in the L2 cache when they are read
/// again.
inline constexpr int loss_most_threads = 512;
constexpr int loss_threads(int vocab, int elements) {
  const int accesses = vocab / elements + 1;
  const int threads = (accesses / 4 + 31) / 32 * 32;
  return threads < 64 ? 64 : threads < loss_most_threads ? threads : loss_most_threads;
}

// --- the next token -------------------------------------------------------------------------------------------------

/// Threads of sample_rows' block, which has a row for itself: as many as a block can have, for a single row shall be
/// read quickly, unless it is short.
inline constexpr int sample_most_threads = 1024;
constexpr int sample_threads(int vocab) {
  const int threads = (vocab / 8 + 31) / 32 * 32;
  return threads < 64 ? 64 : threads < sample_most_threads ? threads : sample_most_threads;
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

// --- attention of few queries ---------------------------------------------------------------------------------------

inline constexpr int decode_rows = 16;          ///< of a tile: queries times the heads that share a kv head
inline constexpr int decode_most_queries = 16;  ///< of a segment
inline constexpr int decode_combine_threads = 128;

/// Parts that a segment's keys are cut into, and tiles of its rows. No parts: the other tiles serve better.
struct DecodeShape {
  int splits = 0;
  int row_tiles = 1;
};
/// Segments of few queries leave most rows of the other tiles empty, and most of a GPU without blocks: here about a
/// thousand, in at most 64 splits. With a great many segments the blocks come by themselves, and memory for their
/// results would be large. Numbers of keys play no part: a launch in a graph is right for any.
constexpr DecodeShape decode_shape(int segments, int heads, int kv_heads, int most_queries) {
  if (most_queries < 1 || most_queries > decode_most_queries) return {};
  const std::int64_t rows = std::int64_t{heads} / kv_heads * most_queries,
                     tiles = (rows + decode_rows - 1) / decode_rows, blocks = std::int64_t{segments} * kv_heads * tiles;
  if (blocks > 8192) return {};
  const auto splits = static_cast<int>(1024 / blocks);
  return {splits < 1 ? 1 : splits < 64 ? splits : 64, static_cast<int>(tiles)};
}
/// Keys of each split but the last one: whole tiles, and enough of them to be worth a block.
TYPEFORMER_HD constexpr int split_length(int keys, int splits) {
  const int even = (keys + splits - 1) / splits, whole = (even + 63) / 64 * 64;
  return whole < 128 ? 128 : whole;
}

/// One warp; several blocks share a multiprocessor.
constexpr AttentionTile tensor_core_decode_tile(int depth) {
  return {depth, decode_rows, depth <= 64 ? 64 : depth <= 128 ? 32 : 16, 2};
}
constexpr AttentionTile float_decode_tile(int depth) {
  return {depth, decode_rows, depth <= 64 ? 32 : depth <= 128 ? 16 : 8, 1};
}

}  // namespace typeformer::inline TYPEFORMER_ABI::cuda::detail
