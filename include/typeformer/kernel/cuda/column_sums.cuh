/// Sums over rows, column by column, in two stages of fixed order: gradients of gains and biases, without atomics.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "typeformer/kernel/cuda/launch.cuh"
#include "typeformer/kernel/cuda/threads.cuh"
#include "typeformer/kernel/cuda/tuning.hpp"

namespace typeformer::inline TYPEFORMER_ABI::cuda::detail {

inline constexpr int column_threads = 128;  // columns of a block

/// The pieces that a [rows, width] matrix is summed in: slabs of rows, each by blocks of columns.
struct ColumnPieces {
  std::int64_t rows = 0;
  std::int64_t slab_rows = 0;
  int width = 0;

  ColumnPieces(std::int64_t row_count, int columns)
      : rows(row_count), slab_rows(rows_per_slab(row_count)), width(columns) {}
  TYPEFORMER_HD std::int64_t slabs() const { return (rows + slab_rows - 1) / slab_rows; }
  TYPEFORMER_HD std::int64_t column_blocks() const { return (width + column_threads - 1) / column_threads; }
  TYPEFORMER_HD std::int64_t items() const { return slabs() * column_blocks(); }
};

/// partials[slab, column] = sum over the slab's rows of terms(row, column).
template <class Terms>
__global__ void __launch_bounds__(column_threads)
    sum_slabs(std::int64_t first, Terms terms, ColumnPieces pieces, float* partials) {
  const std::int64_t item = first + blockIdx.x, slab = item / pieces.column_blocks();
  const auto column = static_cast<int>(item % pieces.column_blocks()) * column_threads + thread_index();
  if (column >= pieces.width) return;
  const std::int64_t end = (slab + 1) * pieces.slab_rows < pieces.rows ? (slab + 1) * pieces.slab_rows : pieces.rows;
  float sum = 0.f;
  for (std::int64_t row = slab * pieces.slab_rows; row < end; ++row) sum += terms(row, column);
  partials[slab * pieces.width + column] = sum;
}

/// to[column] += sum over slabs of partials[slab, column]. (A template, as nvcc has no inline kernels.)
template <class Sum>
__global__ void __launch_bounds__(column_threads)
    add_slabs(std::int64_t first, ColumnPieces pieces, const Sum* partials, Sum* to) {
  const auto column = static_cast<int>(first + blockIdx.x) * column_threads + thread_index();
  if (column >= pieces.width) return;
  Sum sum = 0;
  for (std::int64_t slab = 0; slab < pieces.slabs(); ++slab) sum += partials[slab * pieces.width + column];
  to[column] += sum;
}

/// How many partial sums add_column_sums needs memory for.
inline std::size_t column_partials(std::int64_t rows, int width) {
  return static_cast<std::size_t>(ColumnPieces(rows, width).slabs() * width);
}
/// to[column] += sum over rows of terms(row, column), terms being a small struct with a __device__ call operator.
/// partials: [column_partials(rows, width)].
template <class Terms>
void add_column_sums(Device& on, std::string_view operation, const Terms& terms, std::int64_t rows, int width,
                     float* to, float* partials) {
  const ColumnPieces pieces(rows, width);
  const BlockShape block{dim3(column_threads)};
  launch(on, operation, sum_slabs<Terms>, pieces.items(), block, terms, pieces, partials);
  launch(on, operation, add_slabs<float>, pieces.column_blocks(), block, pieces, partials, to);
}
/// The same with partial sums in the device's scratch memory.
template <class Terms>
void add_column_sums(Device& on, std::string_view operation, const Terms& terms, std::int64_t rows, int width,
                     float* to) {
  if (rows == 0) return;
  add_column_sums(on, operation, terms, rows, width, to, on.scratch<float>(column_partials(rows, width), operation));
}

/// The elements of a matrix, whose rows are `stride` elements apart: of a gradient, they add up to that of the bias.
template <class T>
struct MatrixTerms {
  const T* data;
  std::int64_t stride;
  __device__ float operator()(std::int64_t row, int column) const { return simt::widen(data[row * stride + column]); }
};

}  // namespace typeformer::inline TYPEFORMER_ABI::cuda::detail
