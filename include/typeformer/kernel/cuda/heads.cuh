/// prepare_heads and its backward on CUDA.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "typeformer/kernel/contract.hpp"
#include "typeformer/kernel/cuda/device.cuh"
#include "typeformer/kernel/cuda/heads_backward.cuh"
#include "typeformer/kernel/cuda/heads_work.cuh"
#include "typeformer/kernel/cuda/launch.cuh"
#include "typeformer/kernel/cuda/rows.cuh"
#include "typeformer/kernel/cuda/status.cuh"

namespace typeformer::inline TYPEFORMER_ABI::cuda {
namespace detail {

/// Where a prepared head goes.
template <class T>
__device__ __forceinline__ T* prepared_head(const HeadsArgs<T>& a, HeadKind kind, std::int64_t token, int head) {
  if (kind == HeadKind::query) return dense_head(a.q, a, token, a.heads, head);
  const std::int64_t row = a.kv_row ? a.kv_row[token] : token;
  return dense_head(kind == HeadKind::key ? a.k : a.v, a, row, a.kv_heads, head);
}

/// Heads with statistics of their own. A group of lanes has one token and goes through a chunk of heads, which share
/// the angles.
template <class Norm, Pairs pairs, int elements, int slots, class T>
__global__ void __launch_bounds__(heads_threads, 6)
    prepare_heads(std::int64_t first, Norm norm, Rotation<pairs> rotation, HeadsArgs<T> a, HeadsPlan plan) {
  using Part = HeadPart<pairs, elements, slots>;
  const HeadsItem item(a, plan, first + blockIdx.x);
  const int lanes = plan.shape.lanes;
  std::int64_t token = item.first_token + thread_index() / lanes;
  const bool exists = token < item.end_token;
  if (!exists) token = item.first_token;  // this group only takes part in the shuffles
  const Part part(rotation.width, exists ? a.head_dim : 0, thread_index() % lanes, lanes);
  typename Part::Angles angles;
  if (rotation.width > 0 && item.kind != HeadKind::value) angles = part.angles(rotation, a.position[token]);

  for (int head = item.first_head; head < item.end_head; ++head) {
    auto x = part.load(raw_head(a.qkv, a, token, item.section.first + head));
    if (item.kind != HeadKind::value) {
      if (a.norm_after_rope) part.turn(x, angles);
      if constexpr (normalizes_heads<Norm>) {
        const auto statistics = head_statistics(norm, part, x, a.head_dim, lanes);
        normalize_head(norm, part, statistics, x, item.section, gain_offset(a, head));
      }
      if (!a.norm_after_rope) part.turn(x, angles);
    }
    part.store(prepared_head(a, item.kind, token, head), x);
  }
}

/// Heads with statistics over all of q, and over all of k: a block for each token. The second and third reading hit the
/// cache.
template <class Norm, Pairs pairs, int elements, int slots, class T>
__global__ void __launch_bounds__(all_heads_most_threads, 1)
    prepare_all_heads(std::int64_t first, Norm norm, Rotation<pairs> rotation, HeadsArgs<T> a, int lanes) {
  TYPEFORMER_SHARED_ARRAY(float, partials, 64);
  using Part = HeadPart<pairs, elements, slots>;
  const std::int64_t token = first + blockIdx.x;
  const Part part(rotation.width, a.head_dim, thread_index() % lanes, lanes);
  typename Part::Angles angles;
  if (rotation.width > 0) angles = part.angles(rotation, a.position[token]);
  const SectionStatistics statistics = section_statistics(norm, part, angles, a, token, lanes, partials);

  const int groups = static_cast<int>(blockDim.x) / lanes;
  for (int head = thread_index() / lanes; head < a.heads + 2 * a.kv_heads; head += groups) {
    const HeadKind kind = head < a.heads                ? HeadKind::query
                          : head < a.heads + a.kv_heads ? HeadKind::key
                                                        : HeadKind::value;
    const HeadSection section = section_of(a, kind);
    const int own_head = head - section.first;
    auto x = part.load(raw_head(a.qkv, a, token, head));
    if (kind != HeadKind::value) {
      if (a.norm_after_rope) part.turn(x, angles);
      normalize_head(norm, part, statistics.of(kind == HeadKind::query), x, section, gain_offset(a, own_head));
      if (!a.norm_after_rope) part.turn(x, angles);
    }
    part.store(prepared_head(a, kind, token, own_head), x);
  }
}

/// Throws Error where the kernels would read or write elsewhere. Fills in the stride.
template <class Norm, Pairs pairs, class T>
void check_heads(std::string_view operation, const Rotation<pairs>& rotation, HeadsArgs<T>& a) {
  require(a.tokens >= 0, operation, "tokens", "0 or more", std::to_string(a.tokens));
  require(a.heads > 0 && a.kv_heads > 0, operation, "heads, kv_heads", "1 or more",
          std::to_string(a.heads) + " and " + std::to_string(a.kv_heads));
  require(a.head_dim > 0 && a.head_dim <= largest_head_dim, operation, "head_dim",
          "1 to " + std::to_string(largest_head_dim), std::to_string(a.head_dim));
  require(rotation.width >= 0 && rotation.width <= a.head_dim && rotation.width % 2 == 0, operation, "rotation.width",
          "an even number up to head_dim", std::to_string(rotation.width));
  const std::int64_t width = (std::int64_t{a.heads} + 2 * std::int64_t{a.kv_heads}) * a.head_dim;
  check_width(operation, "heads, kv_heads, head_dim", width);
  if (a.qkv_stride == 0) a.qkv_stride = width;
  require(a.qkv_stride >= width, operation, "qkv_stride", "0 or at least " + std::to_string(width),
          std::to_string(a.qkv_stride));
  if (a.tokens == 0) return;
  require(a.qkv, operation, "qkv", "an array", "null");
  require(rotation.width == 0 || (rotation.frequencies && a.position), operation, "frequencies, position",
          "arrays, heads turn", "null");
  if constexpr (normalizes_heads<Norm>) {
    require(!Norm::has_gain || (a.q_gain && a.k_gain), operation, "q_gain, k_gain", "arrays, the norm has a gain",
            "null");
    require(!Norm::has_bias || (a.q_bias && a.k_bias), operation, "q_bias, k_bias", "arrays, the norm has a bias",
            "null");
  }
}

/// Whether all accesses to heads can be 16 bytes wide, and a slot's channels either all turn or none.
template <Pairs pairs, class T, class... Pointers>
bool heads_aligned(const Rotation<pairs>& rotation, const HeadsArgs<T>& a, const Pointers*... pointers) {
  constexpr int elements = vector_elements<T>;
  return a.head_dim % elements == 0 && rotation.width % (2 * elements) == 0 && a.qkv_stride % elements == 0 &&
         aligned_to_vectors(rotation.frequencies, a.qkv, a.q_gain, a.k_gain, a.q_bias, a.k_bias, pointers...);
}

/// Launches the forward with accesses of `elements` channels and `slots` of them per lane.
template <int elements, int slots, class Norm, Pairs pairs, class T>
void prepare_heads_at(Device& on, const Norm& norm, const Rotation<pairs>& rotation, const HeadsArgs<T>& a) {
  constexpr std::string_view operation = "prepare_heads";
  const HeadsSizes sizes{a.tokens, a.heads, a.kv_heads, a.head_dim, elements};
  if constexpr (normalizes_heads<Norm>) {
    if (a.all_heads) {
      const BlockShape block{dim3(static_cast<unsigned>(all_heads_threads(sizes)))};
      launch(on, operation, prepare_all_heads<Norm, pairs, elements, slots, T>, a.tokens, block, norm, rotation, a,
             heads_lanes(sizes));
      return;
    }
  }
  const HeadsPlan plan(a, heads_shape(sizes));
  launch(on, operation, prepare_heads<Norm, pairs, elements, slots, T>, plan.items(), {dim3(heads_threads)}, norm,
         rotation, a, plan);
}

/// Launches the backward likewise: statistics over all heads where they are, the heads, and the sums of the gradients
/// of gains and biases.
template <int elements, int slots, class Norm, Pairs pairs, class T>
void prepare_heads_backward_at(Device& on, const Norm& norm, const Rotation<pairs>& rotation,
                               const HeadsBackwardArgs<T>& b) {
  constexpr std::string_view operation = "prepare_heads_backward";
  const HeadsArgs<T>& a = b.forward;
  const HeadsSizes sizes{a.tokens, a.heads, a.kv_heads, a.head_dim, elements};
  const HeadGradients<Norm, T> gradients(b);
  const HeadsPlan plan(a, heads_backward_shape(sizes, gradients.any(), gradients.own_gain));
  HeadsSums sums;
  if constexpr (normalizes_heads<Norm>) {
    sums = gradients.allocate(on, operation, plan);
    if (a.all_heads) {
      const BlockShape block{dim3(static_cast<unsigned>(all_heads_threads(sizes)))};
      launch(on, operation, all_heads_gradient_statistics<Norm, pairs, elements, slots, T>, a.tokens, block, norm,
             rotation, b, plan.shape.lanes, sums.statistics);
    }
  }
  launch(on, operation, prepare_heads_backward<Norm, pairs, elements, slots, T>, plan.items(), {dim3(heads_threads)},
         norm, rotation, b, plan, sums);
  gradients.add(on, operation, plan, sums);
}

}  // namespace detail

/// q = turned and normalized q part of qkv; k likewise and v as it is, to their rows of the cache; see HeadsArgs. T is
/// float or bf16, all arithmetic is float. head_dim is 1 to 256. Throws Error on arguments that do not fit together.
/// Asynchronous.
template <class Norm, Pairs pairs, Number T>
void prepare_heads(Device& on, const Norm& norm, const Rotation<pairs>& rotation, const HeadsArgs<T>& args) {
  constexpr std::string_view operation = "prepare_heads";
  HeadsArgs<T> a = args;
  detail::check_heads<Norm>(operation, rotation, a);
  if (a.tokens == 0) return;
  detail::require(a.q && a.k && a.v, operation, "q, k, v", "arrays", "null");
  if (detail::heads_aligned(rotation, a, a.q, a.k, a.v))
    detail::prepare_heads_at<detail::vector_elements<T>, 1>(on, norm, rotation, a);
  else
    detail::prepare_heads_at<1, detail::scalar_head_slots>(on, norm, rotation, a);
}

/// dqkv (=) from dq, dk and dv, and the gradients of gains and biases (+=, each may be null); see HeadsBackwardArgs.
/// Deterministic. Throws Error on arguments that do not fit together. Asynchronous.
template <class Norm, Pairs pairs, Number T>
void prepare_heads_backward(Device& on, const Norm& norm, const Rotation<pairs>& rotation,
                            const HeadsBackwardArgs<T>& args) {
  constexpr std::string_view operation = "prepare_heads_backward";
  HeadsBackwardArgs<T> b = args;
  detail::check_heads<Norm>(operation, rotation, b.forward);
  if (b.forward.tokens == 0) return;
  detail::require(b.dqkv && b.dq && b.dk && b.dv, operation, "dqkv, dq, dk, dv", "arrays", "null");
  if (detail::heads_aligned(rotation, b.forward, b.dqkv, b.dq, b.dk, b.dv))
    detail::prepare_heads_backward_at<detail::vector_elements<T>, 1>(on, norm, rotation, b);
  else
    detail::prepare_heads_backward_at<1, detail::scalar_head_slots>(on, norm, rotation, b);
}

}  // namespace typeformer::inline TYPEFORMER_ABI::cuda
