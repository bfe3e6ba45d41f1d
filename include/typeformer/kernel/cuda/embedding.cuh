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

/// The part of the table that an index belongs to: the upper bits of a product scatter neighbours and multiples of
/// powers of two alike (Fibonacci hashing; Knuth, The Art of Computer Programming 3, section 6.4).
__device__ __forceinline__ int gather_part(std::int32_t index, int parts) {
  return static_cast<int>((static_cast<unsigned>(index) * 2654435769u >> 16) & static_cast<unsigned>(parts - 1));
}

/// A block's tokens, in shared memory.
struct GatherList {
  int* counts;            // one for each word of 32 tokens that are looked at
  int* tokens;            // in order
  std::int32_t* indices;  // of the tokens
  int* sorted;            // places in the list, by index and then by token
};

/// Appends those of the next blockDim.x * gather_indices_per_thread tokens that belong to the part. Returns the list's
/// length, the same in every thread.
template <class T>
__device__ __forceinline__ int append_tokens(const GatherBackwardArgs<T>& a, int part, int parts, int from,
                                             const GatherList& list, int length) {
  const int threads = static_cast<int>(blockDim.x), warps = threads / 32;
  const auto tokens = static_cast<unsigned>(a.tokens), first = static_cast<unsigned>(from);
  std::int32_t indices[gather_indices_per_thread];
  unsigned found[gather_indices_per_thread];  // a bit for each lane
  unsigned any = 0;
  TYPEFORMER_UNROLL
  for (int k = 0; k < gather_indices_per_thread; ++k) {
    const unsigned token = first + static_cast<unsigned>(k * threads + thread_index());  // may be 2^31 and more
    indices[k] = token < tokens ? a.index[token] : 0;
    found[k] = __ballot_sync(whole_warp, token < tokens && gather_part(indices[k], parts) == part);
    if (lane_index() == 0) list.counts[k * warps + warp_index()] = __popc(found[k]);
    any |= found[k];
  }
  if (!__syncthreads_or(any != 0)) return length;
  const unsigned lower = (1u << lane_index()) - 1u;
  TYPEFORMER_UNROLL
  for (int k = 0; k < gather_indices_per_thread; ++k)
    for (int warp = 0; warp < warps; ++warp) {
      if (warp == warp_index() && (found[k] >> lane_index() & 1u)) {
        const int at = length + __popc(found[k] & lower);
        list.tokens[at] = from + k * threads + thread_index();
        list.indices[at] = indices[k];
      }
      length += list.counts[k * warps + warp];
    }
  __syncthreads();
  return length;
}

/// Each thread counts what goes before its elements: lists are short, but for a few frequent indices, which are found
/// to be equal.
__device__ __forceinline__ void sort_tokens(const GatherList& list, int length) {
  for (int n = thread_index(); n < length; n += static_cast<int>(blockDim.x)) {
    const std::int32_t index = list.indices[n];
    int before = 0;
    for (int m = 0; m < length; ++m) {
      const std::int32_t other = list.indices[m];
      before += other < index || (other == index && m < n);
    }
    list.sorted[before] = n;
  }
  __syncthreads();
}

/// Adds the listed rows of dy, columns `column` and the next ones, to those of the table. Rows of one index are summed
/// up in registers; a few are loaded before the first is needed.
template <int elements, class T>
__device__ __forceinline__ void add_listed_rows(const GatherBackwardArgs<T>& a, const GatherList& list, int length,
                                                int column) {
  constexpr int ahead = 4;
  float sums[elements] = {};
  float* to = nullptr;
  std::int32_t current = 0;
  for (int first = 0; first < length; first += ahead) {
    float rows[ahead][elements];
    TYPEFORMER_UNROLL
    for (int n = 0; n < ahead; ++n)
      if (first + n < length)
        load_floats(rows[n], a.dy + std::int64_t{list.tokens[list.sorted[first + n]]} * a.width + column);
    TYPEFORMER_UNROLL
    for (int n = 0; n < ahead; ++n) {
      if (first + n >= length) continue;
      const std::int32_t index = list.indices[list.sorted[first + n]];
      if (!to || index != current) {
        if (to) store_floats(to, sums);
        to = a.dtable + (std::int64_t{index} + a.offset) * a.width + column;
        load_floats(sums, to);
        current = index;
      }
      TYPEFORMER_UNROLL
      for (int e = 0; e < elements; ++e) sums[e] += a.scale * rows[n][e];
    }
  }
  if (to) store_floats(to, sums);
}

/// One block for each part of the table and block of columns: it reads all indices, lists the tokens that belong to its
/// part, sorts the list by index, and adds their rows, those of one index in the order of the tokens. So no row of the
/// table has two writers, and there are no atomics. The other ways cost more: a block per token has to look for its
/// index among all tokens, which grows with their square (of 32768 tokens as frequent as words are, 1.5 GB of indices
/// are read, here 128 MB); sorting all tokens takes several launches and temporaries.
template <int elements, class T>
__global__ void __launch_bounds__(gather_most_threads)
    gather_rows_backward(std::int64_t first, GatherBackwardArgs<T> a, int parts) {
  TYPEFORMER_SHARED_ARRAY(int, counts, gather_tile / 32);
  TYPEFORMER_SHARED_ARRAY(int, tokens, gather_list);
  TYPEFORMER_SHARED_ARRAY(std::int32_t, indices, gather_list);
  TYPEFORMER_SHARED_ARRAY(int, sorted, gather_list);
  const GatherList list{counts, tokens, indices, sorted};
  const auto item = static_cast<int>(first) + static_cast<int>(blockIdx.x), part = item % parts;
  const int tile = static_cast<int>(blockDim.x) * gather_indices_per_thread;
  const int column = (item / parts * static_cast<int>(blockDim.x) + thread_index()) * elements;
  int length = 0;
  for (std::int64_t from = 0; from < a.tokens; from += tile) {
    length = append_tokens(a, part, parts, static_cast<int>(from), list, length);
    if (length <= gather_list - tile && from + tile < a.tokens) continue;  // there is room for another tile
    sort_tokens(list, length);
    if (column < a.width) add_listed_rows<elements>(a, list, length, column);
    length = 0;
  }
}

}  // namespace detail

/// y[t] = scale * table[index[t] + offset] (+ y[t]: accumulate); see GatherArgs. Asynchronous on the device's stream.
template <Number T, Number W>
void gather_rows(Device& on, const GatherArgs<T, W>& a) {
  constexpr std::string_view operation = "gather_rows";
  detail::check_rows(operation, a.tokens, a.width, "tokens");
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
  detail::check_rows(operation, a.tokens, a.width, "tokens");
  if (a.tokens == 0 || !a.dtable) return;
  detail::require(a.dy && a.index, operation, "dy, index", "arrays", "null");
  detail::require(a.tokens < std::int64_t{1} << 31, operation, "tokens", "fewer than 2^31", std::to_string(a.tokens));
  constexpr int most = detail::vector_elements<T>;
  const bool wide = detail::aligned_to_vectors(a.dtable, a.dy) && a.width % most == 0;
  const detail::GatherBackwardShape shape = detail::gather_backward_shape(a.tokens, a.width, wide ? most : 1);
  detail::launch(on, operation, wide ? detail::gather_rows_backward<most, T> : detail::gather_rows_backward<1, T>,
                 std::int64_t{shape.parts} * shape.column_blocks, {dim3(static_cast<unsigned>(shape.threads))}, a,
                 shape.parts);
}

}  // namespace typeformer::inline TYPEFORMER_ABI::cuda
