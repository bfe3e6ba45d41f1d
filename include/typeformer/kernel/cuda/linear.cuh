/// linear and its backward on CUDA: products by cuBLASLt, what it does not document by kernels.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

#include "typeformer/kernel/contract.hpp"
#include "typeformer/kernel/cuda/blas.cuh"
#include "typeformer/kernel/cuda/column_sums.cuh"
#include "typeformer/kernel/cuda/device.cuh"
#include "typeformer/kernel/cuda/launch.cuh"
#include "typeformer/kernel/cuda/rows.cuh"
#include "typeformer/kernel/cuda/status.cuh"

namespace typeformer::inline TYPEFORMER_ABI::cuda {
namespace detail {

/// to[i] = from[i], rounded to T.
template <class T>
__global__ void __launch_bounds__(128) round_numbers(std::int64_t first, T* to, const float* from, int count) {
  const auto i = static_cast<int>(first + blockIdx.x) * 128 + thread_index();
  if (i < count) to[i] = simt::narrow<T>(from[i]);
}

/// The bias as cuBLASLt's epilogue takes it: of the output's type (bf16 beside bf16, as in PyTorch).
template <class T>
const void* epilogue_bias(Device& on, std::string_view operation, const float* bias, int count) {
  if constexpr (sizeof(T) == sizeof(float)) {
    return bias;
  } else {
    if (!bias) return nullptr;
    T* rounded = on.scratch<T>(static_cast<std::size_t>(count), operation);
    launch(on, operation, round_numbers<T>, (count + 127) / 128, {dim3(128)}, rounded, bias, count);
    return rounded;
  }
}

inline void check_linear(std::string_view operation, std::int64_t rows, int in, int out, std::int64_t x_stride,
                         std::int64_t y_stride) {
  require(rows >= 0, operation, "rows", "0 or more", std::to_string(rows));
  require(in > 0 && out > 0, operation, "in, out", "1 or more", std::to_string(in) + " and " + std::to_string(out));
  check_width(operation, "in, out", in > out ? in : out);
  require(x_stride == 0 || x_stride >= in, operation, "x_stride", "0 or at least in", std::to_string(x_stride));
  require(y_stride == 0 || y_stride >= out, operation, "y_stride", "0 or at least out", std::to_string(y_stride));
}

}  // namespace detail

/// y = x w^T + bias (+ residual), sums in float; see LinearArgs. Y is T, or float for logits; the bias is rounded to Y
/// first. Asynchronous.
template <Number T, Number Y>
requires(std::is_same_v<Y, T> || std::is_same_v<Y, float>) void linear(Device& on, const LinearArgs<T, T, Y>& a) {
  constexpr std::string_view operation = "linear";
  detail::check_linear(operation, a.rows, a.in, a.out, a.x_stride, a.y_stride);
  if (a.rows == 0) return;
  detail::require(a.x && a.w && a.y, operation, "x, w, y", "arrays", "null");
  detail::require(a.residual != a.y || a.y_stride == 0 || a.y_stride == a.out, operation, "y_stride",
                  "0 when y is the residual, which is dense", std::to_string(a.y_stride));
  detail::BlasProduct product;
  product.a = detail::blas_matrix(a.x, a.rows, a.in, a.x_stride);
  product.b = detail::blas_matrix(a.w, a.out, a.in);
  product.d = detail::blas_matrix(a.y, a.rows, a.out, a.y_stride);
  product.transpose_b = true;
  product.c = a.residual;
  product.c_stride = a.residual ? a.out : 0;
  product.bias = detail::epilogue_bias<Y>(on, operation, a.bias, a.out);
  on.multiply(operation, product);
}

/// dx = dy w (+=: accumulate), dw += dy^T x and dbias += column sums of dy, both in float; see LinearBackwardArgs.
/// The bias' gradient is summed by kernels in a fixed order: cuBLASLt's own would replace what is there.
template <Number T>
void linear_backward(Device& on, const LinearBackwardArgs<T, T>& a) {
  constexpr std::string_view operation = "linear_backward";
  detail::check_linear(operation, a.rows, a.in, a.out, a.x_stride, a.dy_stride);
  if (a.rows == 0) return;
  detail::require(a.dy, operation, "dy", "an array", "null");
  detail::require(!a.dx || a.w, operation, "w", "an array, dx is wanted", "null");
  detail::require(!a.dw || a.x, operation, "x", "an array, dw is wanted", "null");
  const auto dy = detail::blas_matrix(a.dy, a.rows, a.out, a.dy_stride);
  if (a.dx) {
    detail::BlasProduct product;
    product.a = dy;
    product.b = detail::blas_matrix(a.w, a.out, a.in);
    product.d = detail::blas_matrix(a.dx, a.rows, a.in);
    product.c = a.accumulate ? a.dx : nullptr;
    on.multiply(operation, product);
  }
  if (a.dw) {
    detail::BlasProduct product;
    product.a = dy;
    product.transpose_a = true;
    product.b = detail::blas_matrix(a.x, a.rows, a.in, a.x_stride);
    product.d = detail::blas_matrix(a.dw, a.out, a.in);
    product.c = a.dw;
    on.multiply(operation, product);
  }
  if (a.dbias) detail::add_column_sums(on, operation, detail::MatrixTerms<T>{a.dy, dy.stride}, a.rows, a.out, a.dbias);
}

}  // namespace typeformer::inline TYPEFORMER_ABI::cuda
