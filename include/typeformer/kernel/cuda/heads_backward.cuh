/// The kernels of prepare_heads_backward.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

#include "typeformer/kernel/contract.hpp"
#include "typeformer/kernel/cuda/column_sums.cuh"
#include "typeformer/kernel/cuda/heads_work.cuh"

namespace typeformer::inline TYPEFORMER_ABI::cuda::detail {

/// What the backward needs of a norm's input and of d = gain * gradient.
struct HeadGradientStatistics {
  HeadStatistics of_input;
  float mean_d = 0.f, mean_d_normalized = 0.f;
};

/// Memory of one call.
struct HeadsSums {
  HeadGradientStatistics* statistics = nullptr;  ///< [tokens, 2], of q and k, where they go over all heads
  float* q_gain = nullptr;  ///< [slabs, chunks, head_dim] partial sums, and so on; null: not wanted
  float* k_gain = nullptr;
  float* q_bias = nullptr;
  float* k_bias = nullptr;
  float* columns = nullptr;  ///< for the sums of those
};

/// The gradient of a prepared head of q or k, turned back where the norm comes before RoPE: the gradient of its norm's
/// result.
template <class Part, class T>
__device__ __forceinline__ typename Part::Values norm_gradient(const Part& part, const typename Part::Angles& angles,
                                                               const HeadsBackwardArgs<T>& b, HeadKind kind,
                                                               std::int64_t token, int head) {
  const HeadsArgs<T>& a = b.forward;
  auto d = part.load(kind == HeadKind::query ? dense_head(b.dq, a, token, a.heads, head)
                                             : dense_head(b.dk, a, token, a.kv_heads, head));
  if (!a.norm_after_rope) part.template turn<true>(d, angles);
  return d;
}

/// statistics[token] over all heads of q, and over all of k: a block for each token.
template <class Norm, Pairs pairs, int elements, int slots, class T>
__global__ void __launch_bounds__(all_heads_most_threads, 1)
    all_heads_gradient_statistics(std::int64_t first, Norm norm, Rotation<pairs> rotation, HeadsBackwardArgs<T> b,
                                  int lanes, HeadGradientStatistics* statistics) {
  TYPEFORMER_SHARED_ARRAY(float, partials, 128);
  using Part = HeadPart<pairs, elements, slots>;
  const HeadsArgs<T>& a = b.forward;
  const std::int64_t token = first + blockIdx.x;
  const Part part(rotation.width, a.head_dim, thread_index() % lanes, lanes);
  typename Part::Angles angles;
  if (rotation.width > 0) angles = part.angles(rotation, a.position[token]);
  const SectionStatistics of_input = section_statistics(norm, part, angles, a, token, lanes, partials);

  // sums of d, and of d * normalized
  const auto sum = [&](bool with_normalized, float* shared) {
    const auto term = [&](int head, bool in_q) {
      const HeadKind kind = in_q ? HeadKind::query : HeadKind::key;
      const HeadSection section = section_of(a, kind);
      const int own_head = head - section.first;
      const auto d = norm_gradient(part, angles, b, kind, token, own_head);
      const auto gain = part.template load_factors<Norm>(section.gain, gain_offset(a, own_head));
      const HeadStatistics s = of_input.of(in_q);
      const auto x = norm_input(part, angles, a, token, head);
      float result = 0.f;
      part.for_channels([&](int i, int e) {
        const float factor = with_normalized ? norm.policy.normalize(x.at[i][e] - s.mean, s.scale) : 1.f;
        result += d.at[i][e] * gain.at[i][e] * factor;
      });
      return result;
    };
    return sum_sections(a, lanes, term).total(shared);
  };
  SectionSums of_d;
  if constexpr (Norm::centered) of_d = sum(false, partials + 64);
  const SectionSums of_normalized = sum(true, partials + 96);
  if (thread_index() == 0) {
    const auto q = static_cast<float>(a.heads * a.head_dim), k = static_cast<float>(a.kv_heads * a.head_dim);
    statistics[2 * token] = {of_input.q, of_d.q / q, of_normalized.q / q};
    statistics[2 * token + 1] = {of_input.k, of_d.k / k, of_normalized.k / k};
  }
}

/// to[channel] = the sum over the block's groups of lanes. `exchange`: shared, largest_head_dim floats for each warp.
template <class Part>
__device__ __forceinline__ void sum_groups(const Part& part, typename Part::Values& sums, int lanes, float* exchange) {
  TYPEFORMER_UNROLL
  for (int access = 0; access < Part::accesses; ++access) {
    TYPEFORMER_UNROLL
    for (float& sum : sums.at[access])
      for (int distance = lanes; distance < 32; distance *= 2) sum += __shfl_xor_sync(whole_warp, sum, distance);
  }
  if (lane_index() < lanes)
    part.for_channels(
        [&](int i, int e) { exchange[warp_index() * largest_head_dim + part.channel[i] + e] = sums.at[i][e]; });
}
/// After a barrier: the warps' sums together, to one row of the partial sums.
__device__ __forceinline__ void store_sums(float* to, const float* exchange, int head_dim) {
  for (int c = thread_index(); c < head_dim; c += heads_threads) {
    float sum = 0.f;
    for (int warp = 0; warp < heads_threads / 32; ++warp) sum += exchange[warp * largest_head_dim + c];
    to[c] = sum;
  }
}

/// dqkv of a chunk of heads of a slab of tokens, and what they add to the gradients of gain and bias.
template <class Norm, Pairs pairs, int elements, int slots, class T>
__global__ void __launch_bounds__(heads_threads, 3)
    prepare_heads_backward(std::int64_t first, Norm norm, Rotation<pairs> rotation, HeadsBackwardArgs<T> b,
                           HeadsPlan plan, HeadsSums sums) {
  constexpr int warp_sums = heads_threads / 32 * largest_head_dim;
  TYPEFORMER_SHARED_ARRAY(float, exchange, normalizes_heads<Norm> ? warp_sums*(1 + Norm::has_bias) : 1);
  using Part = HeadPart<pairs, elements, slots>;
  const HeadsArgs<T>& a = b.forward;
  const HeadsItem item(a, plan, first + blockIdx.x);
  const HeadSection& section = item.section;
  const int lanes = plan.shape.lanes, in_k = item.kind == HeadKind::key ? 1 : 0;
  Part part(rotation.width, a.head_dim, thread_index() % lanes, lanes);
  typename Part::Values gain_sums, bias_sums;

  for (std::int64_t begin = item.first_token; begin < item.end_token; begin += heads_threads / lanes) {
    std::int64_t token = begin + thread_index() / lanes;
    part.end = token < item.end_token ? a.head_dim : 0;
    if (token >= item.end_token) token = begin;  // this group only takes part in the shuffles
    typename Part::Angles angles;
    if (rotation.width > 0 && item.kind != HeadKind::value) angles = part.angles(rotation, a.position[token]);
    for (int head = item.first_head; head < item.end_head; ++head) {
      T* to = raw_head(b.dqkv, a, token, section.first + head);
      if (item.kind == HeadKind::value) {
        part.store(to, part.load(dense_head(b.dv, a, token, a.kv_heads, head)));
        continue;
      }
      auto d = norm_gradient(part, angles, b, item.kind, token, head);
      if constexpr (normalizes_heads<Norm>) {
        // statistics of the input
        const auto x = norm_input(part, angles, a, token, section.first + head);
        HeadGradientStatistics s;
        if (sums.statistics)
          s = sums.statistics[2 * token + in_k];
        else
          s.of_input = head_statistics(norm, part, x, a.head_dim, lanes);

        // the gradients of gain and bias, and the sums over the head
        const auto gain = part.template load_factors<Norm>(section.gain, gain_offset(a, head));
        float sum_d = 0.f, sum_d_normalized = 0.f;
        part.for_channels([&](int i, int e) {
          const float normalized = norm.policy.normalize(x.at[i][e] - s.of_input.mean, s.of_input.scale);
          if constexpr (Norm::has_gain) gain_sums.at[i][e] += d.at[i][e] * normalized;
          if constexpr (Norm::has_bias) bias_sums.at[i][e] += d.at[i][e];
          d.at[i][e] *= gain.at[i][e];
          sum_d += d.at[i][e];
          sum_d_normalized += d.at[i][e] * normalized;
        });
        if (!sums.statistics) {
          const auto n = static_cast<float>(a.head_dim);
          if constexpr (Norm::centered) s.mean_d = lane_sum(sum_d, lanes) / n;
          s.mean_d_normalized = lane_sum(sum_d_normalized, lanes) / n;
        }
        part.for_channels([&](int i, int e) {
          d.at[i][e] = norm.policy.normalize_backward(d.at[i][e], x.at[i][e] - s.of_input.mean, s.of_input.scale,
                                                      s.mean_d, s.mean_d_normalized);
        });
      }
      if (a.norm_after_rope) part.template turn<true>(d, angles);
      part.store(to, d);
    }
  }

  if constexpr (normalizes_heads<Norm> && (Norm::has_gain || Norm::has_bias)) {
    if (item.kind == HeadKind::value) return;
    part.end = a.head_dim;
    float* const of_gain = in_k ? sums.k_gain : sums.q_gain;
    float* const of_bias = in_k ? sums.k_bias : sums.q_bias;
    if (of_gain) sum_groups(part, gain_sums, lanes, exchange);
    if constexpr (Norm::has_bias)
      if (of_bias) sum_groups(part, bias_sums, lanes, exchange + warp_sums);
    __syncthreads();
    const std::int64_t row = item.slab * (in_k ? plan.kv_chunks : plan.q_chunks) + item.chunk;
    if (of_gain) store_sums(of_gain + row * a.head_dim, exchange, a.head_dim);
    if constexpr (Norm::has_bias)
      if (of_bias) store_sums(of_bias + row * a.head_dim, exchange + warp_sums, a.head_dim);
  }
}

/// Which gradients of gains and biases are wanted, and their memory.
template <class Norm, class T>
struct HeadGradients {
  float* gain[2] = {};  ///< of q and k
  float* bias[2] = {};
  bool all_heads = false, own_gain = false;
  std::int64_t tokens = 0;
  int head_dim = 0;

  explicit HeadGradients(const HeadsBackwardArgs<T>& b)
      : all_heads(b.forward.all_heads), own_gain(b.forward.all_heads || b.forward.per_head_gain),
        tokens(b.forward.tokens), head_dim(b.forward.head_dim) {
    if (normalizes_heads<Norm> && Norm::has_gain) gain[0] = b.dq_gain, gain[1] = b.dk_gain;
    if (normalizes_heads<Norm> && Norm::has_bias) bias[0] = b.dq_bias, bias[1] = b.dk_bias;
  }
  bool any() const { return gain[0] || gain[1] || bias[0] || bias[1]; }

  HeadsSums allocate(Device& on, std::string_view operation, const HeadsPlan& plan) const {
    constexpr std::int64_t each = sizeof(HeadGradientStatistics) / sizeof(float);
    const std::int64_t statistics = all_heads ? 2 * tokens * each : 0;
    std::int64_t floats = statistics;
    std::size_t columns = 0;
    for (int i = 0; i < 2; ++i) {
      floats += ((gain[i] ? 1 : 0) + (bias[i] ? 1 : 0)) * partial_count(plan, i);
      if (gain[i] || bias[i]) columns = std::max(columns, column_partials(rows(plan, i), width(plan, i)));
    }
    HeadsSums sums;
    if (floats == 0) return sums;
    float* next = on.scratch<float>(static_cast<std::size_t>(floats) + columns, operation);
    const auto take = [&next](std::int64_t count) { return std::exchange(next, next + count); };
    if (all_heads) sums.statistics = reinterpret_cast<HeadGradientStatistics*>(take(statistics));
    if (gain[0]) sums.q_gain = take(partial_count(plan, 0));
    if (gain[1]) sums.k_gain = take(partial_count(plan, 1));
    if (bias[0]) sums.q_bias = take(partial_count(plan, 0));
    if (bias[1]) sums.k_bias = take(partial_count(plan, 1));
    sums.columns = next;
    return sums;
  }
  /// gradient += the partial sums.
  void add(Device& on, std::string_view operation, const HeadsPlan& plan, const HeadsSums& sums) const {
    const auto add_to = [&](float* to, const float* partials, int i) {
      const MatrixTerms<float> terms{partials, width(plan, i)};
      if (to) add_column_sums(on, operation, terms, rows(plan, i), width(plan, i), to, sums.columns);
    };
    add_to(gain[0], sums.q_gain, 0);
    add_to(gain[1], sums.k_gain, 1);
    add_to(bias[0], sums.q_bias, 0);
    add_to(bias[1], sums.k_bias, 1);
  }

 private:
  // The partial sums as the matrix whose columns are added up: where gains are the heads' own, a chunk is a head.
  static int chunks(const HeadsPlan& plan, int i) { return i == 0 ? plan.q_chunks : plan.kv_chunks; }
  int width(const HeadsPlan& plan, int i) const { return own_gain ? chunks(plan, i) * head_dim : head_dim; }
  std::int64_t rows(const HeadsPlan& plan, int i) const { return own_gain ? plan.slabs : plan.slabs * chunks(plan, i); }
  std::int64_t partial_count(const HeadsPlan& plan, int i) const { return plan.slabs * chunks(plan, i) * head_dim; }
};

}  // namespace typeformer::inline TYPEFORMER_ABI::cuda::detail
