/// Kernels that go over the rows of a matrix: which thread works where, sums over a row, and the launch.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "typeformer/kernel/cuda/launch.cuh"
#include "typeformer/kernel/cuda/status.cuh"
#include "typeformer/kernel/cuda/threads.cuh"
#include "typeformer/kernel/cuda/tuning.hpp"

namespace typeformer::inline TYPEFORMER_ABI::cuda::detail {

/// Sums over the threads of a row: a warp, or the whole block (one row). `partials`: shared, one number per warp, for
/// this sum alone.
template <class Value>
__device__ __forceinline__ Value row_sum(Value value, Value* partials) {
  value = lane_sum(value);
  if (blockDim.x == 32) return value;
  if (lane_index() == 0) partials[warp_index()] = value;
  __syncthreads();
  Value sum = 0;
  for (unsigned warp = 0; warp < blockDim.x / 32; ++warp) sum += partials[warp];
  return sum;
}

/// body(i) for every access of this thread to a row: elements i to i + elements - 1.
template <int elements, class Body>
__device__ __forceinline__ void for_row(int width, Body body) {
  for (int i = thread_index() * elements; i < width; i += static_cast<int>(blockDim.x) * elements) body(i);
}

/// The row that a block's thread works on; not below the number of rows when there is none left.
__device__ __forceinline__ std::int64_t row_of(std::int64_t first) {
  return (first + blockIdx.x) * static_cast<int>(blockDim.y) + static_cast<int>(threadIdx.y);
}

/// Throws Error when rows of so many elements are too long for a kernel.
inline void check_width(std::string_view operation, std::string_view name, std::int64_t width) {
  require(width <= largest_width, operation, name, "at most " + std::to_string(largest_width), std::to_string(width));
}
inline void check_rows(std::string_view operation, std::int64_t rows, int width, std::string_view name = "rows") {
  require(rows >= 0, operation, name, "0 or more", std::to_string(rows));
  require(width > 0, operation, "width", "1 or more", std::to_string(width));
  check_width(operation, "width", width);
}

/// What a kernel over rows is launched for.
struct Rows {
  std::int64_t count = 0;
  int width = 0;
  int elements = 1;      ///< of an access of 16 bytes
  bool aligned = false;  ///< whether all rows begin at such an access
};

/// Launches `vectors` when accesses of 16 bytes are possible, else `scalars`.
template <class... Parameters, class... Arguments>
void launch_rows(Device& on, std::string_view operation, void (*vectors)(std::int64_t, Parameters...),
                 void (*scalars)(std::int64_t, Parameters...), const Rows& rows, const Arguments&... arguments) {
  const bool wide = rows.aligned && rows.width % rows.elements == 0;
  const RowShape shape = row_shape(rows.width, wide ? rows.elements : 1);
  const std::int64_t blocks = (rows.count + shape.rows - 1) / shape.rows;
  const BlockShape block{dim3(static_cast<unsigned>(shape.threads), static_cast<unsigned>(shape.rows))};
  launch(on, operation, wide ? vectors : scalars, blocks, block, arguments...);
}

}  // namespace typeformer::inline TYPEFORMER_ABI::cuda::detail
