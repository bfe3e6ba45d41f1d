/// Sums and the optimizer's update on CUDA.
#pragma once
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "typeformer/kernel/contract.hpp"
#include "typeformer/kernel/cuda/device.cuh"
#include "typeformer/kernel/cuda/flat.cuh"
#include "typeformer/kernel/cuda/launch.cuh"
#include "typeformer/kernel/cuda/rows.cuh"
#include "typeformer/kernel/cuda/status.cuh"
#include "typeformer/kernel/cuda/threads.cuh"
#include "typeformer/kernel/cuda/tuning.hpp"

namespace typeformer::inline TYPEFORMER_ABI::cuda {
namespace detail {

template <int elements, class T>
__global__ void __launch_bounds__(flat_threads) add(std::int64_t first, std::int64_t from, AddArgs<T> args) {
  const std::int64_t i = flat_index<elements>(first, from);
  if (i + elements > args.count) return;
  float a[elements], b[elements];
  load_floats(a, args.a + i);
  load_floats(b, args.b + i);
  TYPEFORMER_UNROLL
  for (int e = 0; e < elements; ++e) a[e] += b[e];
  store_floats(args.y + i, a);
}

/// 1 - b1^t and 1 - b2^t, which undo that m and v began with zeros.
struct AdamWCorrections {
  float m, v;
};

/// Moves 28 bytes for each weight.
template <int elements>
__global__ void __launch_bounds__(flat_threads)
    adamw(std::int64_t first, std::int64_t from, AdamWArgs a, AdamWCorrections corrections) {
  const std::int64_t i = flat_index<elements>(first, from);
  if (i + elements > a.count) return;
  float weight[elements], gradient[elements], m[elements], v[elements];
  load_floats(weight, a.weight + i);
  load_floats(gradient, a.gradient + i);
  load_floats(m, a.m + i);
  load_floats(v, a.v + i);
  TYPEFORMER_UNROLL
  for (int e = 0; e < elements; ++e) {
    const float g = gradient[e] * a.gradient_scale;
    m[e] = a.beta1 * m[e] + (1.f - a.beta1) * g;
    v[e] = a.beta2 * v[e] + (1.f - a.beta2) * g * g;
    const float update = m[e] / corrections.m / (sqrtf(v[e] / corrections.v) + a.eps);
    weight[e] -= a.learning_rate * (update + a.decay * weight[e]);
  }
  store_floats(a.weight + i, weight);
  store_floats(a.m + i, m);
  store_floats(a.v + i, v);
}

/// partials[block] = the sum over every `blocks`-th piece of the array, one access per thread wide. The first block
/// takes the elements that are left over.
template <int elements>
__global__ void __launch_bounds__(flat_threads)
    sum_squares(std::int64_t first, const float* x, std::int64_t count, int blocks, double* partials) {
  TYPEFORMER_SHARED_ARRAY(double, warp_sums, flat_threads / 32);
  const std::int64_t block = first + blockIdx.x, whole = count / elements * elements;
  double sum = 0;
  for (std::int64_t i = (block * flat_threads + thread_index()) * elements; i < whole;
       i += static_cast<std::int64_t>(blocks) * flat_threads * elements) {
    float values[elements];
    load_floats(values, x + i);
    TYPEFORMER_UNROLL
    for (int e = 0; e < elements; ++e) sum += double{values[e]} * double{values[e]};
  }
  if (block == 0 && whole + thread_index() < count) {
    const double left = double{x[whole + thread_index()]};
    sum += left * left;
  }
  sum = row_sum(sum, warp_sums);
  if (thread_index() == 0) partials[block] = sum;
}

/// to[0] = the sum of the partials, by one block. (A template, as nvcc has no inline kernels.)
template <class Sum>
__global__ void __launch_bounds__(flat_threads) add_up(std::int64_t, const Sum* partials, int count, Sum* to) {
  TYPEFORMER_SHARED_ARRAY(Sum, warp_sums, flat_threads / 32);
  Sum sum = 0;
  for (int i = thread_index(); i < count; i += flat_threads) sum += partials[i];
  sum = row_sum(sum, warp_sums);
  if (thread_index() == 0) to[0] = sum;
}

}  // namespace detail

/// y = a + b, rounded once; see AddArgs. Asynchronous.
template <Number T>
void add(Device& on, const AddArgs<T>& a) {
  constexpr std::string_view operation = "add";
  detail::check_count(operation, a.count);
  if (a.count == 0) return;
  detail::require(a.y && a.a && a.b, operation, "y, a, b", "arrays", "null");
  constexpr int elements = detail::vector_elements<T>;
  detail::launch_flat(on, operation, detail::add<elements, T>, detail::add<1, T>, elements,
                      detail::aligned_to_vectors(a.y, a.a, a.b), a);
}

/// One step of AdamW on `count` weights; see AdamWArgs. Asynchronous.
inline void adamw(Device& on, const AdamWArgs& a) {
  constexpr std::string_view operation = "adamw";
  detail::check_count(operation, a.count);
  detail::require(a.step >= 1, operation, "step", "1 or more", std::to_string(a.step));
  if (a.count == 0) return;
  detail::require(a.weight && a.gradient && a.m && a.v, operation, "weight, gradient, m, v", "arrays", "null");
  const detail::AdamWCorrections corrections{static_cast<float>(1. - std::pow(double{a.beta1}, a.step)),
                                             static_cast<float>(1. - std::pow(double{a.beta2}, a.step))};
  constexpr int elements = detail::vector_elements<float>;
  detail::launch_flat(on, operation, detail::adamw<elements>, detail::adamw<1>, elements,
                      detail::aligned_to_vectors(a.weight, a.gradient, a.m, a.v), a, corrections);
}

/// sum x^2 in double, in an order that depends on count and on whether x is aligned to 16 bytes, not on the GPU. Waits.
inline double sum_of_squares(Device& on, const float* x, std::int64_t count) {
  constexpr std::string_view operation = "sum_of_squares";
  detail::check_count(operation, count);
  if (count == 0) return 0;
  detail::require(x, operation, "x", "an array", "null");
  constexpr int most = detail::vector_elements<float>;
  const bool wide = detail::aligned_to_vectors(x);
  const int blocks = detail::sum_blocks(wide ? count / most : count);
  auto* partials = on.scratch<double>(static_cast<std::size_t>(blocks) + 1, operation);
  const detail::BlockShape block{dim3(detail::flat_threads)};
  detail::launch(on, operation, wide ? detail::sum_squares<most> : detail::sum_squares<1>, blocks, block, x, count,
                 blocks, partials);
  detail::launch(on, operation, detail::add_up<double>, 1, block, partials, blocks, partials + blocks);
  double sum = 0;
  on.download(&sum, partials + blocks, sizeof sum);
  return sum;
}

}  // namespace typeformer::inline TYPEFORMER_ABI::cuda
