/// The two tiles that attention's kernels are written on. A tile is a block's `rows` rows against `columns` rows of the
/// other side, `depth` channels of each:
///
///   multiply(scores, own, other)    scores = own other^T                      [rows, columns]
///   weigh(sums, scores, other)      sums += scores other                      [rows, depth]
///
/// FloatTile multiplies floats one by one, for results within the rounding of float; TensorCoreTile multiplies 16-bit
/// numbers with mma.sync. In both, four neighbouring lanes share a row, thread_rows rows of each thread are 8 apart,
/// and sums are float.
#pragma once
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "typeformer/kernel/cuda/threads.cuh"
#include "typeformer/kernel/cuda/tuning.hpp"
#include "typeformer/simt/simt.hpp"

namespace typeformer::inline TYPEFORMER_ABI::cuda::detail {

/// What both tiles have: sizes, and which row a thread has.
template <int depth_, int rows_, int columns_, int thread_rows_>
struct TileShape {
  static constexpr int depth = depth_, rows = rows_, columns = columns_, thread_rows = thread_rows_;
  static constexpr int threads = rows / (8 * thread_rows) * 32;
  static constexpr int thread_columns = columns / 4, thread_channels = depth / 4;

  /// body(r, c) for each of the thread's scores.
  template <class Body>
  static __device__ __forceinline__ void for_scores(Body body) {
    TYPEFORMER_UNROLL
    for (int r = 0; r < thread_rows; ++r) {
      TYPEFORMER_UNROLL
      for (int c = 0; c < thread_columns; ++c) body(r, c);
    }
  }
  /// The tile's row behind thread_rows index r.
  static __device__ __forceinline__ int row(int r) { return warp_index() * 8 * thread_rows + lane_index() / 4 + 8 * r; }
};

/// Products of floats, four channels at a time. Rows are 16 bytes longer than the channels, so that eight rows' loads
/// hit different banks.
template <int depth_, int rows_, int columns_, int thread_rows_>
struct FloatTile : TileShape<depth_, rows_, columns_, thread_rows_> {
  using Shape = TileShape<depth_, rows_, columns_, thread_rows_>;
  using Shape::columns, Shape::depth, Shape::rows, Shape::thread_rows, Shape::thread_columns, Shape::thread_channels;
  using Number = float;
  static constexpr int row_elements = depth + 4;
  static constexpr int exchange_row = columns + 4;
  /// Where a warp's lanes give each other their scores.
  static constexpr std::size_t exchange_bytes = sizeof(float) * rows * exchange_row;

  struct Scores {
    float values[thread_rows][thread_columns] = {};
    __device__ __forceinline__ float& at(int r, int c) { return values[r][c]; }
  };
  struct Sums {
    float values[thread_rows][thread_channels] = {};
    __device__ __forceinline__ float& at(int r, int c) { return values[r][c]; }
  };

  /// The element where 16-byte piece `piece` of a row in shared memory begins.
  static __device__ __forceinline__ int offset(int row, int piece) { return row * row_elements + piece * 4; }
  /// The tile's column behind index c of the scores.
  static __device__ __forceinline__ int column(int c) { return lane_index() % 4 + 4 * c; }
  /// The channel behind index c of the sums.
  static __device__ __forceinline__ int channel(int c) { return c / 4 * 16 + lane_index() % 4 * 4 + c % 4; }
  static __device__ __forceinline__ float exponential(float x) { return expf(x); }

  static __device__ __forceinline__ void multiply(Scores& scores, const float* own, const float* other) {
    TYPEFORMER_UNROLL_BY(4)
    for (int piece = 0; piece < depth / 4; ++piece) {
      float4 a[thread_rows];
      TYPEFORMER_UNROLL
      for (int r = 0; r < thread_rows; ++r) a[r] = simt::load_vector<float4>(own + offset(Shape::row(r), piece));
      TYPEFORMER_UNROLL
      for (int c = 0; c < thread_columns; ++c) {
        const float4 b = simt::load_vector<float4>(other + offset(column(c), piece));
        TYPEFORMER_UNROLL
        for (int r = 0; r < thread_rows; ++r) {
          float& sum = scores.values[r][c];
          sum += a[r].x * b.x;
          sum += a[r].y * b.y;
          sum += a[r].z * b.z;
          sum += a[r].w * b.w;
        }
      }
    }
  }

  static __device__ __forceinline__ void weigh(Sums& sums, const Scores& scores, const float* other, float* exchange) {
    Shape::for_scores([&](int r, int c) { exchange[Shape::row(r) * exchange_row + column(c)] = scores.values[r][c]; });
    __syncwarp();  // a warp's rows are its own
    TYPEFORMER_UNROLL_BY(2)
    for (int k = 0; k < columns; k += 4) {
      float weights[thread_rows][4];
      TYPEFORMER_UNROLL
      for (int r = 0; r < thread_rows; ++r) load_floats(weights[r], exchange + Shape::row(r) * exchange_row + k);
      TYPEFORMER_UNROLL
      for (int j = 0; j < 4; ++j) add_row(sums, weights, j, other, k + j);
    }
    __syncwarp();  // read by all before the next scores come
  }

  /// Writes factor times the row behind index r. `vectors`: rows begin at multiples of 16 bytes.
  static __device__ __forceinline__ void store_row(float* to, const Sums& sums, int r, float factor, int head_dim,
                                                   bool vectors) {
    TYPEFORMER_UNROLL
    for (int c = 0; c < thread_channels; c += 4) {
      const int first = channel(c);
      float four[4];
      TYPEFORMER_UNROLL
      for (int e = 0; e < 4; ++e) four[e] = sums.values[r][c + e] * factor;
      if (vectors && first < head_dim) {
        store_floats(to + first, four);
      } else {
        TYPEFORMER_UNROLL
        for (int e = 0; e < 4; ++e) {
          if (first + e < head_dim) to[first + e] = four[e];
        }
      }
    }
  }
  /// Writes the row as it is, as floats; `vectors` as above.
  static __device__ __forceinline__ void store_sums(float* to, const Sums& sums, int r, int head_dim, bool vectors) {
    store_row(to, sums, r, 1.f, head_dim, vectors);
  }

 private:
  static __device__ __forceinline__ void add_row(Sums& sums, const float (&weights)[thread_rows][4], int j,
                                                 const float* other, int row) {
    TYPEFORMER_UNROLL
    for (int c = 0; c < thread_channels; c += 4) {
      float values[4];
      load_floats(values, other + offset(row, channel(c) / 4));
      TYPEFORMER_UNROLL
      for (int r = 0; r < thread_rows; ++r) {
        TYPEFORMER_UNROLL
        for (int e = 0; e < 4; ++e) sums.values[r][c + e] += weights[r][j] * values[e];
      }
    }
  }
};

/// Products on tensor cores: mma.m16n8k16, operands through ldmatrix from tiles whose 16-byte pieces are swizzled, so
/// that eight rows of one piece lie in different banks.
template <class T, int depth_, int rows_, int columns_>
struct TensorCoreTile : TileShape<depth_, rows_, columns_, 2> {
  using Shape = TileShape<depth_, rows_, columns_, 2>;
  using Shape::columns, Shape::depth, Shape::rows, Shape::thread_columns, Shape::thread_channels;
  using Number = T;
  static constexpr int row_elements = depth;
  static constexpr std::size_t exchange_bytes = 0;  // the scores' registers already lie as the next product wants them

  /// Accumulators of mma: pairs of columns of row 0, then of row 1.
  template <int count>
  struct Accumulators {
    float blocks[count / 2][4] = {};
    __device__ __forceinline__ float& at(int r, int c) { return blocks[c / 2][2 * r + c % 2]; }
  };
  using Scores = Accumulators<thread_columns>;
  using Sums = Accumulators<thread_channels>;

  static __device__ __forceinline__ int offset(int row, int piece) {
    if constexpr (depth >= 64)
      return row * depth + (piece ^ (row & 7)) * 8;
    else
      return row * depth + (piece ^ (row >> 1 & 3)) * 8;  // two rows share 128 bytes
  }
  static __device__ __forceinline__ int column(int c) { return c / 2 * 8 + lane_index() % 4 * 2 + c % 2; }
  static __device__ __forceinline__ int channel(int c) { return column(c); }
  static __device__ __forceinline__ float exponential(float x) { return exp2f(x * 1.44269504f); }

  static __device__ __forceinline__ void multiply(Scores& scores, const T* own, const T* other) {
    const int lane = lane_index(), own_row = warp_index() * 16 + lane % 16;
    const int other_row = lane % 8 + lane / 16 * 8, other_piece = lane / 8 % 2;
    TYPEFORMER_UNROLL
    for (int k = 0; k < depth / 16; ++k) {
      unsigned a[4];
      simt::ldmatrix_x4(a, own + offset(own_row, 2 * k + lane / 16));
      TYPEFORMER_UNROLL
      for (int j = 0; j < columns / 16; ++j) {
        unsigned b[4];
        simt::ldmatrix_x4(b, other + offset(16 * j + other_row, 2 * k + other_piece));
        simt::mma_m16n8k16<T>(scores.blocks[2 * j], a, b[0], b[1]);
        simt::mma_m16n8k16<T>(scores.blocks[2 * j + 1], a, b[2], b[3]);
      }
    }
  }

  static __device__ __forceinline__ void weigh(Sums& sums, const Scores& scores, const T* other, float* /*exchange*/) {
    const int lane = lane_index();
    TYPEFORMER_UNROLL
    for (int k = 0; k < columns / 16; ++k) {
      unsigned a[4];
      TYPEFORMER_UNROLL
      for (int i = 0; i < 4; ++i) {
        const float(&block)[4] = scores.blocks[2 * k + i / 2];
        a[i] = simt::pack<T>(block[i % 2 * 2], block[i % 2 * 2 + 1]);
      }
      TYPEFORMER_UNROLL
      for (int j = 0; j < depth / 16; ++j) {
        unsigned b[4];
        simt::ldmatrix_x4_trans(b, other + offset(16 * k + lane % 16, 2 * j + lane / 16));
        simt::mma_m16n8k16<T>(sums.blocks[2 * j], a, b[0], b[1]);
        simt::mma_m16n8k16<T>(sums.blocks[2 * j + 1], a, b[2], b[3]);
      }
    }
  }

  static __device__ __forceinline__ void store_row(T* to, const Sums& sums, int r, float factor, int head_dim,
                                                   bool vectors) {
    TYPEFORMER_UNROLL
    for (int c = 0; c < thread_channels; c += 2) {
      const int first = channel(c);
      const float low = sums.blocks[c / 2][2 * r] * factor, high = sums.blocks[c / 2][2 * r + 1] * factor;
      if (vectors && first < head_dim) {
        simt::store_vector(to + first, simt::pack<T>(low, high));
      } else {
        if (first < head_dim) to[first] = simt::narrow<T>(low);
        if (first + 1 < head_dim) to[first + 1] = simt::narrow<T>(high);
      }
    }
  }
  static __device__ __forceinline__ void store_sums(float* to, const Sums& sums, int r, int head_dim, bool vectors) {
    TYPEFORMER_UNROLL
    for (int c = 0; c < thread_channels; c += 2) {
      const int first = channel(c);
      const float low = sums.blocks[c / 2][2 * r], high = sums.blocks[c / 2][2 * r + 1];
      if (vectors && first < head_dim) {
        simt::store_vector(to + first, make_float2(low, high));
      } else {
        if (first < head_dim) to[first] = low;
        if (first + 1 < head_dim) to[first + 1] = high;
      }
    }
  }
};

/// The tile of a number type for a pass, sizes from tuning.hpp.
template <class T, int depth, AttentionPass pass>
struct TileOf {
  static constexpr AttentionTile tuned = tensor_core_tile(depth, pass);
  using type = TensorCoreTile<T, depth, tuned.rows, tuned.columns>;
};
template <int depth, AttentionPass pass>
struct TileOf<float, depth, pass> {
  static constexpr AttentionTile tuned = float_tile(depth, pass);
  using type = FloatTile<depth, tuned.rows, tuned.columns, tuned.thread_rows>;
};

/// One head of some rows of a matrix: row i lies at data + (first + i) * stride, in a ring at slot i % ring.
template <class T>
struct HeadRows {
  const T* data = nullptr;
  std::int64_t stride = 0;
  std::int64_t first = 0;
  int count = 0;
  int ring = 0;
  const __device__ __forceinline__ T* operator[](int row) const {
    return data + (first + (ring ? row % ring : row)) * stride;
  }
};

/// Starts to copy rows begin .. begin + tile_rows - 1 to shared memory; rows and channels that do not exist become
/// zeros. Rows: as HeadRows.
template <class Tile, int tile_rows, class T, class Rows>
__device__ __forceinline__ void load_rows(T* to, const Rows& rows, int begin, int head_dim, bool vectors) {
  constexpr int elements = vector_elements<T>, pieces = Tile::depth / elements;
  for (int i = thread_index(); i < tile_rows * pieces; i += Tile::threads) {
    const int row = i / pieces, piece = i % pieces, channel = piece * elements;
    const bool valid = begin + row < rows.count && channel < head_dim;
    const T* from = valid ? rows[begin + row] + channel : rows.data;
    T* piece_to = to + Tile::offset(row, piece);
    if (vectors) {
      simt::cp_async<16>(piece_to, from, valid);
    } else {
      TYPEFORMER_UNROLL
      for (int e = 0; e < elements; ++e) piece_to[e] = valid && channel + e < head_dim ? from[e] : simt::narrow<T>(0.f);
    }
  }
}

}  // namespace typeformer::inline TYPEFORMER_ABI::cuda::detail
