/// The shape of logits (scale, soft cap) and their cross-entropy with z-loss and label smoothing, on CUDA.
#pragma once
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

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

/// z = softcap(factor * z).
template <int elements>
__device__ __forceinline__ void shape_values(float (&z)[elements], float factor, float cap) {
  TYPEFORMER_UNROLL
  for (int e = 0; e < elements; ++e) z[e] *= factor;
  if (cap > 0.f) {
    TYPEFORMER_UNROLL
    for (int e = 0; e < elements; ++e) z[e] = cap * tanhf(z[e] / cap);
  }
}

/// (A template, as nvcc has no inline kernels.)
template <int elements>
__global__ void __launch_bounds__(flat_threads) shape_logits(std::int64_t first, std::int64_t from, ShapeLogitsArgs a) {
  const std::int64_t i = flat_index<elements>(first, from);
  if (i + elements > a.count) return;
  float z[elements];
  load_floats(z, a.y + i);
  shape_values(z, a.factor, a.cap);
  store_floats(a.y + i, z);
}

/// A row that begins and ends anywhere: accesses of 16 bytes between `head` elements before them and some after. The
/// ends have fewer than two accesses' elements together, one for each of the first threads.
template <class T>
struct UnalignedRow {
  static constexpr int elements = vector_elements<T>;
  int head, accesses, ends;

  __device__ UnalignedRow(const T* row, int width) {
    const auto element = reinterpret_cast<std::uintptr_t>(row) / sizeof(T);
    head = static_cast<int>(-element % elements);
    accesses = (width - head) / elements;  // none when the row ends before its head
    ends = width - accesses * elements;
  }
  /// body(number of elements, the first one) for every access of this thread, from the last one on when `backwards`.
  template <bool backwards, class Body>
  __device__ __forceinline__ void each(Body body) const {
    const int threads = static_cast<int>(blockDim.x), thread = thread_index();
    if (thread < ends) body(std::integral_constant<int, 1>{}, thread < head ? thread : thread + accesses * elements);
    const int mine = (accesses - thread + threads - 1) / threads;  // 0 or less: none
    TYPEFORMER_UNROLL_BY(2)
    for (int n = 0; n < mine; ++n) {
      const int access = (backwards ? mine - 1 - n : n) * threads + thread;
      body(std::integral_constant<int, elements>{}, head + access * elements);
    }
  }
};

/// sum = sum of exp(z - highest), for the z seen so far: the softmax's denominator in one pass (Milakov & Gimelshein
/// 2018, arXiv:1805.02867). `plain` adds up z itself.
struct OnlineSum {
  float highest = -INFINITY, sum = 0.f, plain = 0.f;

  template <int elements>
  __device__ __forceinline__ void add(const float (&z)[elements]) {
    float most = highest;
    TYPEFORMER_UNROLL
    for (int e = 0; e < elements; ++e) most = fmaxf(most, z[e]);
    if (most > highest) {
      sum *= expf(highest - most);
      highest = most;
    }
    const float base = highest == -INFINITY ? 0.f : highest;  // nothing but -infinity so far: exp gives 0
    TYPEFORMER_UNROLL
    for (int e = 0; e < elements; ++e) {
      sum += expf(z[e] - base);
      plain += z[e];
    }
  }
};

/// The largest value of a block's threads. `partials` as in row_sum.
__device__ __forceinline__ float block_max(float value, float* partials) {
  value = lane_max(value);
  if (lane_index() == 0) partials[warp_index()] = value;
  __syncthreads();
  for (unsigned warp = 0; warp < blockDim.x / 32; ++warp) value = fmaxf(value, partials[warp]);
  return value;
}

/// One block for each row, two passes. The first reads each logit and keeps a maximum and a sum; the second, for the
/// gradient, goes backwards, since what was read last is most likely still in the cache, and reads and writes each
/// once. Moved per logit: sizeof(T) without the gradient, three times that with it, two of them from memory at most
/// when the row stays in the L2 cache.
template <class T>
__global__ void __launch_bounds__(loss_most_threads) cross_entropy(std::int64_t first, CrossEntropyArgs<T> a) {
  TYPEFORMER_SHARED_ARRAY(float, partials, 3 * (loss_most_threads / 32));
  constexpr int warps = loss_most_threads / 32;
  const std::int64_t row = first + blockIdx.x;
  T* logits = a.logits + row * a.vocab;
  const UnalignedRow<T> part(logits, a.vocab);
  const int label = a.labels[row];
  if (label < 0) {  // ignored, by all threads
    if (thread_index() == 0) a.loss[row] = 0.f;
    if (a.gradient)
      part.template each<false>([&](auto elements, int i) {
        const float zeros[elements()] = {};
        store_floats(logits + i, zeros);
      });
    return;
  }

  OnlineSum mine;
  part.template each<false>([&](auto elements, int i) {
    float z[elements()];
    load_floats(z, logits + i);
    shape_values(z, a.factor, a.cap);
    mine.add(z);
  });
  float at_label[1];
  load_floats(at_label, logits + label);  // before the barriers, after which others overwrite it
  shape_values(at_label, a.factor, a.cap);

  const float highest = block_max(mine.highest, partials);
  const float sum = row_sum(mine.sum * expf(mine.highest - highest), partials + warps);  // NaN if all are -infinity
  const float log_z = highest + logf(sum);
  const float share = a.smoothing / static_cast<float>(a.vocab);
  if (a.smoothing > 0.f) mine.plain = row_sum(mine.plain, partials + 2 * warps);
  if (thread_index() == 0) {
    float target = (1.f - a.smoothing) * at_label[0];
    if (share > 0.f) target += share * mine.plain;
    a.loss[row] = log_z - target + a.z_loss * log_z * log_z;
  }
  if (!a.gradient) return;

  const float slope = (1.f + 2.f * a.z_loss * log_z) / sum;
  part.template each<true>([&](auto elements, int i) {
    float z[elements()];
    load_floats(z, logits + i);
    shape_values(z, a.factor, a.cap);
    TYPEFORMER_UNROLL
    for (int e = 0; e < elements(); ++e) {
      const float wanted = share + (i + e == label ? 1.f - a.smoothing : 0.f);
      float d = slope * expf(z[e] - highest) - wanted;
      if (a.cap > 0.f) d *= 1.f - (z[e] / a.cap) * (z[e] / a.cap);
      z[e] = d * a.factor * a.gradient_scale;
    }
    store_floats(logits + i, z);
  });
}

}  // namespace detail

/// y = softcap(factor * y) in place; see ShapeLogitsArgs. Asynchronous.
inline void shape_logits(Device& on, const ShapeLogitsArgs& a) {
  constexpr std::string_view operation = "shape_logits";
  detail::check_count(operation, a.count);
  if (a.count == 0 || (a.factor == 1.f && !(a.cap > 0.f))) return;
  detail::require(a.y, operation, "y", "an array", "null");
  constexpr int elements = detail::vector_elements<float>;
  detail::launch_flat(on, operation, detail::shape_logits<elements>, detail::shape_logits<1>, elements,
                      detail::aligned_to_vectors(a.y), a);
}

/// loss per row, and with `gradient` the gradient of the raw logits in their place; see CrossEntropyArgs. Asynchronous,
/// deterministic.
template <Number T>
void cross_entropy(Device& on, const CrossEntropyArgs<T>& a) {
  constexpr std::string_view operation = "cross_entropy";
  detail::require(a.rows >= 0, operation, "rows", "0 or more", std::to_string(a.rows));
  detail::require(a.vocab > 0, operation, "vocab", "1 or more", std::to_string(a.vocab));
  if (a.rows == 0) return;
  detail::require(a.logits && a.labels && a.loss, operation, "logits, labels, loss", "arrays", "null");
  const int threads = detail::loss_threads(a.vocab, detail::vector_elements<T>);
  detail::launch(on, operation, detail::cross_entropy<T>, a.rows, {dim3(static_cast<unsigned>(threads))}, a);
}

}  // namespace typeformer::inline TYPEFORMER_ABI::cuda
