/// norm_rows and its backward on CUDA.
#pragma once
#include <cstdint>
#include <string_view>

#include "typeformer/kernel/contract.hpp"
#include "typeformer/kernel/cuda/column_sums.cuh"
#include "typeformer/kernel/cuda/device.cuh"
#include "typeformer/kernel/cuda/rows.cuh"
#include "typeformer/kernel/cuda/status.cuh"
#include "typeformer/kernel/cuda/threads.cuh"

namespace typeformer::inline TYPEFORMER_ABI::cuda {
namespace detail {

/// The factors that a norm multiplies channels i .. with.
template <class Norm, int elements>
__device__ __forceinline__ void load_gain(float (&to)[elements], const float* gain, int i) {
  if constexpr (Norm::has_gain) load_floats(to, gain + i);
  TYPEFORMER_UNROLL
  for (int e = 0; e < elements; ++e) {
    if constexpr (Norm::gain == Gain::one_plus) to[e] += 1.f;
    if constexpr (Norm::gain == Gain::none) to[e] = 1.f;
  }
}

/// Statistics of a row in two passes, so that a large mean costs no digits; the second and third reading hit the cache.
template <class Norm, int elements, class T>
__global__ void __launch_bounds__(512) norm_rows(std::int64_t first, Norm norm, NormArgs<T> a) {
  TYPEFORMER_SHARED_ARRAY(float, partials, 32);
  const std::int64_t row = row_of(first);
  if (row >= a.rows) return;
  const T* x = a.x + row * a.width;
  const auto n = static_cast<float>(a.width);

  float mean = 0.f;
  if constexpr (Norm::centered) {
    float sum = 0.f;
    for_row<elements>(a.width, [&](int i) {
      float values[elements];
      load_floats(values, x + i);
      TYPEFORMER_UNROLL
      for (int e = 0; e < elements; ++e) sum += values[e];
    });
    mean = row_sum(sum, partials) / n;
  }

  float squares = 0.f;
  for_row<elements>(a.width, [&](int i) {
    float values[elements];
    load_floats(values, x + i);
    TYPEFORMER_UNROLL
    for (int e = 0; e < elements; ++e) squares += (values[e] - mean) * (values[e] - mean);
  });
  const float scale = norm.policy.scale(row_sum(squares, partials + 16) / n);
  if (threadIdx.x == 0) {
    if (a.mean) a.mean[row] = mean;
    if (a.scale) a.scale[row] = scale;
  }

  for_row<elements>(a.width, [&](int i) {
    float values[elements], gain[elements], more[elements];
    load_floats(values, x + i);
    load_gain<Norm>(gain, a.gain, i);
    TYPEFORMER_UNROLL
    for (int e = 0; e < elements; ++e) values[e] = norm.policy.normalize(values[e] - mean, scale) * gain[e];
    if constexpr (Norm::has_bias) {
      load_floats(more, a.bias + i);
      TYPEFORMER_UNROLL
      for (int e = 0; e < elements; ++e) values[e] += more[e];
    }
    if (a.residual) {
      load_floats(more, a.residual + row * a.width + i);
      TYPEFORMER_UNROLL
      for (int e = 0; e < elements; ++e) values[e] += more[e];
    }
    store_floats(a.y + row * a.width + i, values);
  });
}

/// dx of a row: two sums over it, then one formula per element.
template <class Norm, int elements, class T>
__global__ void __launch_bounds__(512) norm_rows_backward(std::int64_t first, Norm norm, NormBackwardArgs<T> a) {
  TYPEFORMER_SHARED_ARRAY(float, partials, 32);
  const std::int64_t row = row_of(first);
  if (row >= a.rows) return;
  const T* x = a.x + row * a.width;
  const T* dy = a.dy + row * a.width;
  const float mean = Norm::centered ? a.mean[row] : 0.f, scale = a.scale[row];
  const auto n = static_cast<float>(a.width);

  float sum_d = 0.f, sum_d_normalized = 0.f;
  for_row<elements>(a.width, [&](int i) {
    float values[elements], d[elements], gain[elements];
    load_floats(values, x + i);
    load_floats(d, dy + i);
    load_gain<Norm>(gain, a.gain, i);
    TYPEFORMER_UNROLL
    for (int e = 0; e < elements; ++e) {
      sum_d += d[e] * gain[e];
      sum_d_normalized += d[e] * gain[e] * norm.policy.normalize(values[e] - mean, scale);
    }
  });
  float mean_d = 0.f;
  if constexpr (Norm::centered) mean_d = row_sum(sum_d, partials) / n;
  const float mean_d_normalized = row_sum(sum_d_normalized, partials + 16) / n;

  for_row<elements>(a.width, [&](int i) {
    float values[elements], d[elements], gain[elements];
    load_floats(values, x + i);
    load_floats(d, dy + i);
    load_gain<Norm>(gain, a.gain, i);
    TYPEFORMER_UNROLL
    for (int e = 0; e < elements; ++e)
      values[e] = norm.policy.normalize_backward(d[e] * gain[e], values[e] - mean, scale, mean_d, mean_d_normalized);
    if (a.accumulate) {
      load_floats(d, a.dx + row * a.width + i);
      TYPEFORMER_UNROLL
      for (int e = 0; e < elements; ++e) values[e] += d[e];
    }
    store_floats(a.dx + row * a.width + i, values);
  });
}

/// What one element adds to the gradient of the gain.
template <class Norm, class T>
struct GainGradientTerms {
  Norm norm;
  NormBackwardArgs<T> a;
  __device__ float operator()(std::int64_t row, int column) const {
    const std::int64_t at = row * a.width + column;
    const float mean = Norm::centered ? a.mean[row] : 0.f;
    return simt::widen(a.dy[at]) * norm.policy.normalize(simt::widen(a.x[at]) - mean, a.scale[row]);
  }
};
}  // namespace detail

/// y = gain * normalize(x - mean?, scale) + bias (+ residual), row by row; see NormArgs. T is float or bf16, sums are
/// float. Throws Error when an array that the norm needs is missing. Asynchronous on the device's stream.
template <class Norm, Number T>
void norm_rows(Device& on, const Norm& norm, const NormArgs<T>& a) {
  constexpr std::string_view operation = "norm_rows";
  detail::check_rows(operation, a.rows, a.width);
  if (a.rows == 0) return;
  detail::require(a.x && a.y, operation, "x, y", "arrays", "null");
  detail::require(!Norm::has_gain || a.gain, operation, "gain", "an array, the norm has a gain", "null");
  detail::require(!Norm::has_bias || a.bias, operation, "bias", "an array, the norm has a bias", "null");
  constexpr int elements = detail::vector_elements<T>;
  const bool aligned = detail::aligned_to_vectors(a.x, a.y, a.residual, a.gain, a.bias);
  detail::launch_rows(on, operation, detail::norm_rows<Norm, elements, T>, detail::norm_rows<Norm, 1, T>,
                      {a.rows, a.width, elements, aligned}, norm, a);
}

/// dx from dy, and += the gradients of gain and bias (each may be null); see NormBackwardArgs. Deterministic.
template <class Norm, Number T>
void norm_rows_backward(Device& on, const Norm& norm, const NormBackwardArgs<T>& a) {
  constexpr std::string_view operation = "norm_rows_backward";
  detail::check_rows(operation, a.rows, a.width);
  if (a.rows == 0) return;
  detail::require(a.x && a.dy && a.dx, operation, "x, dy, dx", "arrays", "null");
  detail::require(a.scale, operation, "scale", "the forward's scales", "null");
  detail::require(!Norm::centered || a.mean, operation, "mean", "the forward's means, the norm is centred", "null");
  detail::require(!Norm::has_gain || a.gain, operation, "gain", "an array, the norm has a gain", "null");
  // before dx, which may overwrite dy
  if constexpr (Norm::has_gain)
    if (a.dgain)
      detail::add_column_sums(on, operation, detail::GainGradientTerms<Norm, T>{norm, a}, a.rows, a.width, a.dgain);
  if (Norm::has_bias && a.dbias)
    detail::add_column_sums(on, operation, detail::MatrixTerms<T>{a.dy, a.width}, a.rows, a.width, a.dbias);
  constexpr int elements = detail::vector_elements<T>;
  const bool aligned = detail::aligned_to_vectors(a.x, a.dy, a.dx, a.gain);
  detail::launch_rows(on, operation, detail::norm_rows_backward<Norm, elements, T>,
                      detail::norm_rows_backward<Norm, 1, T>, {a.rows, a.width, elements, aligned}, norm, a);
}

}  // namespace typeformer::inline TYPEFORMER_ABI::cuda
