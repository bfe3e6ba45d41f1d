/// activate and its backward on CUDA.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "typeformer/kernel/contract.hpp"
#include "typeformer/kernel/cuda/device.cuh"
#include "typeformer/kernel/cuda/launch.cuh"
#include "typeformer/kernel/cuda/rows.cuh"
#include "typeformer/kernel/cuda/status.cuh"
#include "typeformer/kernel/cuda/threads.cuh"
#include "typeformer/kernel/cuda/tuning.hpp"

namespace typeformer::inline TYPEFORMER_ABI::cuda {
namespace detail {

template <ActivationPolicy Activation>
inline constexpr int branches = Activation::gated ? 2 : 1;

/// Where a thread works: a row, and from which column in which steps.
struct RowPiece {
  std::int64_t row;
  int column, step;
};
/// `pieces` of a row for a block each; with rows in blockDim.y there is one.
template <int elements>
__device__ __forceinline__ RowPiece row_piece(std::int64_t first, int pieces) {
  const std::int64_t item = first + blockIdx.x, whole = item / pieces;
  const auto piece = static_cast<int>(item - whole * pieces);
  const int threads = static_cast<int>(blockDim.x);
  return {whole * static_cast<int>(blockDim.y) + static_cast<int>(threadIdx.y),
          (piece * threads + thread_index()) * elements, pieces * threads * elements};
}

/// Moves each number once; an element costs two or three of them and a formula.
template <class Activation, int elements, class T>
__global__ void __launch_bounds__(activation_most_threads)
    activate(std::int64_t first, Activation f, ActivateArgs<T> a, int pieces) {
  const RowPiece at = row_piece<elements>(first, pieces);
  if (at.row >= a.rows) return;
  const T* x = a.x + at.row * a.x_stride;
  T* y = a.y + at.row * a.width;
  for (int i = at.column; i < a.width; i += at.step) {
    float values[elements];
    load_floats(values, x + i);
    if constexpr (Activation::gated) {
      float up[elements];
      load_floats(up, x + a.width + i);
      TYPEFORMER_UNROLL
      for (int e = 0; e < elements; ++e) values[e] = f(values[e], up[e]);
    } else {
      TYPEFORMER_UNROLL
      for (int e = 0; e < elements; ++e) values[e] = f(values[e]);
    }
    store_floats(y + i, values);
  }
}

/// A thread has read both branches of its elements before it writes them: dx may be x.
template <class Activation, int elements, class T>
__global__ void __launch_bounds__(activation_most_threads)
    activate_backward(std::int64_t first, Activation f, ActivateBackwardArgs<T> a, int pieces) {
  const RowPiece at = row_piece<elements>(first, pieces);
  if (at.row >= a.rows) return;
  const T* x = a.x + at.row * a.x_stride;
  const T* dy = a.dy + at.row * a.width;
  T* dx = a.dx + at.row * a.dx_stride;
  for (int i = at.column; i < a.width; i += at.step) {
    float values[elements], d[elements];
    load_floats(values, x + i);
    load_floats(d, dy + i);
    if constexpr (Activation::gated) {
      float up[elements];
      load_floats(up, x + a.width + i);
      TYPEFORMER_UNROLL
      for (int e = 0; e < elements; ++e) {
        const float gate = values[e];
        values[e] = d[e] * f.derivative_gate(gate, up[e]);
        up[e] = d[e] * f.derivative_up(gate, up[e]);
      }
      store_floats(dx + a.width + i, up);
    } else {
      TYPEFORMER_UNROLL
      for (int e = 0; e < elements; ++e) values[e] = d[e] * f.derivative(values[e]);
    }
    store_floats(dx + i, values);
  }
}

/// The stride that 0 stands for, or an Error when rows overlap.
inline std::int64_t activation_stride(std::string_view operation, std::string_view name, std::int64_t stride,
                                      std::int64_t dense) {
  require(stride == 0 || stride >= dense, operation, name, "0 or at least " + std::to_string(dense),
          std::to_string(stride));
  return stride ? stride : dense;
}

/// Launches `vectors` when accesses of 16 bytes are possible, else `scalars`.
template <class Activation, class Args>
void launch_activation(Device& on, std::string_view operation, void (*vectors)(std::int64_t, Activation, Args, int),
                       void (*scalars)(std::int64_t, Activation, Args, int), int elements, bool aligned,
                       const Activation& f, const Args& a) {
  const ActivationShape shape = activation_shape(a.width, aligned ? elements : 1);
  const std::int64_t blocks = (a.rows + shape.rows - 1) / shape.rows * shape.pieces;
  const BlockShape block{dim3(static_cast<unsigned>(shape.threads), static_cast<unsigned>(shape.rows))};
  launch(on, operation, aligned ? vectors : scalars, blocks, block, f, a, shape.pieces);
}

}  // namespace detail

/// y = f(x), or f(gate, up) with x = gate | up; see ActivateArgs. f is called with floats. Asynchronous.
template <ActivationPolicy Activation, Number T>
void activate(Device& on, const Activation& f, ActivateArgs<T> a) {
  constexpr std::string_view operation = "activate";
  detail::check_rows(operation, a.rows, a.width);
  const std::int64_t dense = std::int64_t{detail::branches<Activation>} * a.width;
  a.x_stride = detail::activation_stride(operation, "x_stride", a.x_stride, dense);
  if (a.rows == 0) return;
  detail::require(a.x && a.y, operation, "x, y", "arrays", "null");
  constexpr int elements = detail::vector_elements<T>;
  const bool aligned = detail::aligned_to_vectors(a.x, a.y) && a.width % elements == 0 && a.x_stride % elements == 0;
  detail::launch_activation(on, operation, detail::activate<Activation, elements, T>,
                            detail::activate<Activation, 1, T>, elements, aligned, f, a);
}

/// dx = dy times f's derivatives; see ActivateBackwardArgs. Asynchronous.
template <ActivationPolicy Activation, Number T>
void activate_backward(Device& on, const Activation& f, ActivateBackwardArgs<T> a) {
  constexpr std::string_view operation = "activate_backward";
  detail::check_rows(operation, a.rows, a.width);
  const std::int64_t dense = std::int64_t{detail::branches<Activation>} * a.width;
  a.x_stride = detail::activation_stride(operation, "x_stride", a.x_stride, dense);
  a.dx_stride = detail::activation_stride(operation, "dx_stride", a.dx_stride, dense);
  if (a.rows == 0) return;
  detail::require(a.x && a.dy && a.dx, operation, "x, dy, dx", "arrays", "null");
  detail::require(a.dx != a.x || a.dx_stride == a.x_stride, operation, "dx_stride", "x_stride when dx is x",
                  std::to_string(a.dx_stride));
  constexpr int elements = detail::vector_elements<T>;
  const bool aligned = detail::aligned_to_vectors(a.x, a.dy, a.dx) && a.width % elements == 0 &&
                       a.x_stride % elements == 0 && a.dx_stride % elements == 0;
  detail::launch_activation(on, operation, detail::activate_backward<Activation, elements, T>,
                            detail::activate_backward<Activation, 1, T>, elements, aligned, f, a);
}

}  // namespace typeformer::inline TYPEFORMER_ABI::cuda
