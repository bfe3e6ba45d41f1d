/// Rows of a table for token ids, and their gradient, on CUDA.
#pragma once
#include <algorithm>
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

template <int elements, class T, class W>
__global__ void __launch_bounds__(512) gather_rows(std::int64_t first, GatherArgs<T, W> a) {
  const std::int64_t token = row_of(first);
  if (token >= a.tokens) return;
  const W* from = a.table + (std::int64_t{a.index[token]} + a.offset) * a.width;
  T* y = a.y + token * a.width;
  for_row<elements>(a.width, [&](int i) {
    float values[elements];
    load_floats(values, from + i);
    TYPEFORMER_UNROLL
    for (int e = 0; e < elements; ++e) values[e] *= a.scale;
    if (a.accumulate) {
      float before[elements];
      load_floats(before, y + i);
      TYPEFORMER_UNROLL
      for (int e = 0; e < elements; ++e) values[e] += before[e];
    }
    store_floats(y + i, values);
  });
}

/// Whether an earlier token has this one's index; the same in every thread of the block. The nearest ones are looked at
/// first: frequent tokens have one close by.
__device__ __forceinline__ bool seen_before(const std::int32_t* index, std::int64_t token) {
  const std::int32_t wanted = index[token];
  const int threads = static_cast<int>(blockDim.x);
  for (std::int64_t end = token; end > 0; end -= threads * gather_indices_per_thread) {
    bool found = false;
    TYPEFORMER_UNROLL
    for (int k = 0; k < gather_indices_per_thread; ++k) {
      const std::int64_t earlier = end - 1 - k * threads - thread_index();
      if (earlier >= 0) found |= index[earlier] == wanted;
    }
    if (__syncthreads_or(found)) return true;
  }
  return false;
}

/// Lists those of the next blockDim.x * gather_indices_per_thread tokens that have the index, in order, as distances
/// from the first; returns their number, the same in every thread. `counts`: one for each word of 32 tokens.
__device__ __forceinline__ int list_tokens(const std::int32_t* index, std::int32_t wanted, std::int64_t from,
                                           std::int64_t tokens, int* counts, int* list) {
  const int threads = static_cast<int>(blockDim.x), warps = threads / 32;
  unsigned found[gather_indices_per_thread];  // a bit for each lane
  unsigned any = 0;
  TYPEFORMER_UNROLL
  for (int k = 0; k < gather_indices_per_thread; ++k) {
    const std::int64_t token = from + k * threads + thread_index();
    const bool same = token < tokens && index[token] == wanted;
    found[k] = __ballot_sync(whole_warp, same);
    if (lane_index() == 0) counts[k * warps + warp_index()] = __popc(found[k]);
    any |= found[k];
  }
  if (!__syncthreads_or(any != 0)) return 0;
  int total = 0;
  TYPEFORMER_UNROLL
  for (int k = 0; k < gather_indices_per_thread; ++k)
    for (int warp = 0; warp < warps; ++warp) {
      const unsigned lower = (1u << lane_index()) - 1u;
      if (warp == warp_index() && (found[k] >> lane_index() & 1u))
        list[total + __popc(found[k] & lower)] = k * threads + thread_index();
      total += counts[k * warps + warp];
    }
  __syncthreads();
  return total;
}

/// One block for each token and block of columns. The first token of an index works for all that have it: it lists them
/// and adds their rows, in their order, in registers. So no row of the table has two writers, no atomics, and nothing
/// is sorted. Every block looks for its index among the tokens before it: of 32768 tokens with 5000 different indices
/// that is some 100 MB from the L2 cache, well below the rows of dy; it grows with tokens * different indices.
template <int elements, class T>
__global__ void __launch_bounds__(gather_most_threads)
    gather_rows_backward(std::int64_t first, GatherBackwardArgs<T> a, int blocks_per_row) {
  TYPEFORMER_SHARED_ARRAY(int, counts, gather_most_threads / 32 * gather_indices_per_thread);
  TYPEFORMER_SHARED_ARRAY(int, list, gather_most_threads* gather_indices_per_thread);
  const std::int64_t item = first + blockIdx.x, token = item / blocks_per_row;
  if (seen_before(a.index, token)) return;  // all threads together

  const int threads = static_cast<int>(blockDim.x);
  const int column = (static_cast<int>(item % blocks_per_row) * threads + thread_index()) * elements;
  const bool inside = column < a.width;
  float* to = a.dtable + (std::int64_t{a.index[token]} + a.offset) * a.width + column;
  float sums[elements] = {};
  if (inside) load_floats(sums, to);
  for (std::int64_t from = token; from < a.tokens; from += threads * gather_indices_per_thread) {
    const int count = list_tokens(a.index, a.index[token], from, a.tokens, counts, list);
    if (!inside) continue;
    TYPEFORMER_UNROLL_BY(8)
    for (int n = 0; n < count; ++n) {
      float values[elements];
      load_floats(values, a.dy + (from + list[n]) * a.width + column);
      TYPEFORMER_UNROLL
      for (int e = 0; e < elements; ++e) sums[e] += a.scale * values[e];
    }
  }
  if (inside) store_floats(to, sums);
}

inline void check_tokens(std::string_view operation, std::int64_t tokens, int width) {
  require(tokens >= 0, operation, "tokens", "0 or more", std::to_string(tokens));
  require(width > 0, operation, "width", "1 or more", std::to_string(width));
}

}  // namespace detail

/// y[t] = scale * table[index[t] + offset] (+ y[t]: accumulate); see GatherArgs. Asynchronous on the device's stream.
template <Number T, Number W>
void gather_rows(Device& on, const GatherArgs<T, W>& a) {
  constexpr std::string_view operation = "gather_rows";
  detail::check_tokens(operation, a.tokens, a.width);
  if (a.tokens == 0) return;
  detail::require(a.y && a.table && a.index, operation, "y, table, index", "arrays", "null");
  constexpr int elements = std::max(detail::vector_elements<T>, detail::vector_elements<W>);
  detail::launch_rows(on, operation, detail::gather_rows<elements, T, W>, detail::gather_rows<1, T, W>,
                      {a.tokens, a.width, elements, detail::aligned_to_vectors(a.y, a.table)}, a);
}

/// dtable[index[t] + offset] += scale * dy[t], in the order of t; see GatherBackwardArgs. Deterministic.
template <Number T>
void gather_rows_backward(Device& on, const GatherBackwardArgs<T>& a) {
  constexpr std::string_view operation = "gather_rows_backward";
  detail::check_tokens(operation, a.tokens, a.width);
  if (a.tokens == 0 || !a.dtable) return;
  detail::require(a.dy && a.index, operation, "dy, index", "arrays", "null");
  constexpr int most = detail::vector_elements<T>;
  const bool wide = detail::aligned_to_vectors(a.dtable, a.dy) && a.width % most == 0;
  const detail::GatherBackwardShape shape = detail::gather_backward_shape(a.width, wide ? most : 1);
  detail::launch(on, operation, wide ? detail::gather_rows_backward<most, T> : detail::gather_rows_backward<1, T>,
                 a.tokens * shape.blocks, {dim3(static_cast<unsigned>(shape.threads))}, a, shape.blocks);
}

}  // namespace typeformer::inline TYPEFORMER_ABI::cuda
