/// How the preparation of heads is spread over threads: which heads of which tokens a block has, and which channels of
/// a head a lane has.
#pragma once
#include <cstdint>
#include <type_traits>

#include "typeformer/kernel/contract.hpp"
#include "typeformer/kernel/cuda/norm.cuh"
#include "typeformer/kernel/cuda/rotation.cuh"
#include "typeformer/kernel/cuda/threads.cuh"
#include "typeformer/kernel/cuda/tuning.hpp"

namespace typeformer::inline TYPEFORMER_ABI::cuda::detail {

/// False for the form of no norm: nothing is read then, not even a gain.
template <class Norm>
inline constexpr bool normalizes_heads = !std::is_same_v<Norm, NormForm<NoNorm, Gain::none, false>>;

/// The three parts of a row of qkv.
enum class HeadKind { query, key, value };

/// All heads of one kind.
struct HeadSection {
  const float* gain = nullptr;
  const float* bias = nullptr;
  int heads = 0;
  int first = 0;  ///< heads before them in a row of qkv
};
template <class T>
__device__ __forceinline__ HeadSection section_of(const HeadsArgs<T>& a, HeadKind kind) {
  if (kind == HeadKind::query) return {a.q_gain, a.q_bias, a.heads, 0};
  if (kind == HeadKind::key) return {a.k_gain, a.k_bias, a.kv_heads, a.heads};
  return {nullptr, nullptr, a.kv_heads, a.heads + a.kv_heads};
}
/// Where a head's gain and bias begin.
template <class T>
__device__ __forceinline__ int gain_offset(const HeadsArgs<T>& a, int head) {
  return a.per_head_gain || a.all_heads ? head * a.head_dim : 0;
}
/// The raw head at `head` of a row of qkv or of its gradient.
template <class Data, class T>
__device__ __forceinline__ Data* raw_head(Data* qkv, const HeadsArgs<T>& a, std::int64_t token, int head) {
  return qkv + token * a.qkv_stride + head * a.head_dim;
}
/// A head in a dense matrix of `heads` heads.
template <class Data, class T>
__device__ __forceinline__ Data* dense_head(Data* rows, const HeadsArgs<T>& a, std::int64_t row, int heads, int head) {
  return rows + (row * heads + head) * a.head_dim;
}

/// The blocks of a launch: item by item, chunks of neighboring heads of one kind, within slabs of tokens.
struct HeadsPlan {
  HeadsShape shape;
  int q_chunks = 0, kv_chunks = 0;
  std::int64_t slabs = 0;

  template <class T>
  HeadsPlan(const HeadsArgs<T>& a, const HeadsShape& chosen)
      : shape(chosen), q_chunks((a.heads + chosen.heads - 1) / chosen.heads),
        kv_chunks((a.kv_heads + chosen.heads - 1) / chosen.heads),
        slabs((a.tokens + chosen.tokens - 1) / chosen.tokens) {}
  TYPEFORMER_HD int chunks() const { return q_chunks + 2 * kv_chunks; }
  TYPEFORMER_HD std::int64_t items() const { return slabs * chunks(); }
};

/// One item of a plan.
struct HeadsItem {
  HeadKind kind = HeadKind::query;
  int chunk = 0;                     ///< among those of its kind
  int first_head = 0, end_head = 0;  ///< of its kind
  std::int64_t slab = 0, first_token = 0, end_token = 0;
  HeadSection section;

  template <class T>
  __device__ __forceinline__ HeadsItem(const HeadsArgs<T>& a, const HeadsPlan& plan, std::int64_t item)
      : chunk(static_cast<int>(item % plan.chunks())), slab(item / plan.chunks()) {
    if (chunk >= plan.q_chunks) {
      chunk -= plan.q_chunks;
      kind = chunk < plan.kv_chunks ? HeadKind::key : HeadKind::value;
      if (chunk >= plan.kv_chunks) chunk -= plan.kv_chunks;
    }
    section = section_of(a, kind);
    first_head = chunk * plan.shape.heads;
    end_head = min(first_head + plan.shape.heads, section.heads);
    first_token = slab * plan.shape.tokens;
    end_token = first_token + plan.shape.tokens < a.tokens ? first_token + plan.shape.tokens : a.tokens;
  }
};

/// A lane's part of a head: `slots` times two accesses of `elements` channels. The two channels of a pair belong to one
/// lane: where pairs are halves, the accesses of a slot that turns are half the rotary width apart, else they are
/// neighbors. Slots that turn come first.
template <Pairs pairs, int elements, int slots>
struct HeadPart {
  static constexpr int accesses = 2 * slots;
  struct Values {
    float at[accesses][elements] = {};
  };
  struct Angles {
    SineCosine at[slots][elements];
  };

  int channel[accesses];  ///< first channel of each access
  int pair[slots];        ///< first pair of each slot
  int end;                ///< channels from here on do not exist
  int width;              ///< rotary width

  __device__ __forceinline__ HeadPart(int rotary_width, int head_dim, int lane, int lanes)
      : end(head_dim), width(rotary_width) {
    TYPEFORMER_UNROLL
    for (int s = 0; s < slots; ++s) {
      pair[s] = (lane + s * lanes) * elements;
      const bool apart = pairs == Pairs::halves && turns(s);
      channel[2 * s] = apart ? pair[s] : 2 * pair[s];
      channel[2 * s + 1] = channel[2 * s] + (apart ? width / 2 : elements);
    }
  }
  __device__ __forceinline__ bool turns(int slot) const { return pair[slot] < width / 2; }

  /// body(access, element) for every channel that exists.
  template <class Body>
  __device__ __forceinline__ void for_channels(Body body) const {
    TYPEFORMER_UNROLL
    for (int access = 0; access < accesses; ++access) {
      if (channel[access] >= end) continue;
      TYPEFORMER_UNROLL
      for (int e = 0; e < elements; ++e) body(access, e);
    }
  }
  template <class T>
  __device__ __forceinline__ Values load(const T* head) const {
    Values x;
    TYPEFORMER_UNROLL
    for (int access = 0; access < accesses; ++access)
      if (channel[access] < end) load_floats(x.at[access], head + channel[access]);
    return x;
  }
  template <class T>
  __device__ __forceinline__ void store(T* head, const Values& x) const {
    TYPEFORMER_UNROLL
    for (int access = 0; access < accesses; ++access)
      if (channel[access] < end) store_floats(head + channel[access], x.at[access]);
  }
  /// The norm's factors of this head, whose gain begins at `at`.
  template <class Norm>
  __device__ __forceinline__ Values load_factors(const float* gain, int at) const {
    Values x;
    TYPEFORMER_UNROLL
    for (int access = 0; access < accesses; ++access)
      if (channel[access] < end) load_gain<Norm>(x.at[access], gain, at + channel[access]);
    return x;
  }

  /// sin and cos of this lane's pairs. The product of position and frequency is rounded to float, as on the CPU.
  __device__ __forceinline__ Angles angles(const Rotation<pairs>& rotation, int position) const {
    Angles result;
    TYPEFORMER_UNROLL
    for (int s = 0; s < slots; ++s) {
      if (!turns(s)) continue;
      float frequencies[elements];
      load_floats(frequencies, rotation.frequencies + pair[s]);
      TYPEFORMER_UNROLL
      for (int e = 0; e < elements; ++e) {
        const SineCosine exact = sine_cosine(__fmul_rn(static_cast<float>(position), frequencies[e]));
        result.at[s][e] = {exact.sine * rotation.amplitude, exact.cosine * rotation.amplitude};
      }
    }
    return result;
  }
  /// (a, b) -> (a cos - b sin, b cos + a sin); `back`: by the transposed matrix, as gradients turn.
  template <bool back = false>
  __device__ __forceinline__ void turn(Values& x, const Angles& angles) const {
    TYPEFORMER_UNROLL
    for (int s = 0; s < slots; ++s) {
      if (!turns(s)) continue;
      TYPEFORMER_UNROLL
      for (int e = 0; e < elements; ++e) {
        const int i = pairs == Pairs::adjacent ? 2 * e : e, j = pairs == Pairs::adjacent ? 2 * e + 1 : elements + e;
        float &a = x.at[2 * s + i / elements][i % elements], &b = x.at[2 * s + j / elements][j % elements];
        const float cosine = angles.at[s][e].cosine, sine = back ? -angles.at[s][e].sine : angles.at[s][e].sine;
        const float turned = a * cosine - b * sine;
        b = b * cosine + a * sine;
        a = turned;
      }
    }
  }
};

/// What a norm knows of a head, or of all heads together.
struct HeadStatistics {
  float mean = 0.f, scale = 1.f;
};
/// In two passes, so that a large mean costs no digits; the sums go over `lanes` lanes.
template <class Norm, class Part>
__device__ __forceinline__ HeadStatistics head_statistics(const Norm& norm, const Part& part,
                                                          const typename Part::Values& x, int head_dim, int lanes) {
  HeadStatistics statistics;
  const auto n = static_cast<float>(head_dim);
  if constexpr (Norm::centered) {
    float sum = 0.f;
    part.for_channels([&](int i, int e) { sum += x.at[i][e]; });
    statistics.mean = lane_sum(sum, lanes) / n;
  }
  float squares = 0.f;
  part.for_channels([&](int i, int e) { squares += (x.at[i][e] - statistics.mean) * (x.at[i][e] - statistics.mean); });
  statistics.scale = norm.policy.scale(lane_sum(squares, lanes) / n);
  return statistics;
}

/// x = gain * normalize(x - mean, scale) + bias; this head's gain and bias begin at `at`.
template <class Norm, class Part>
__device__ __forceinline__ void normalize_head(const Norm& norm, const Part& part, const HeadStatistics& statistics,
                                               typename Part::Values& x, const HeadSection& section, int at) {
  typename Part::Values more = part.template load_factors<Norm>(section.gain, at);
  part.for_channels([&](int i, int e) {
    x.at[i][e] = norm.policy.normalize(x.at[i][e] - statistics.mean, statistics.scale) * more.at[i][e];
  });
  if constexpr (Norm::has_bias) {
    more = part.load(section.bias + at);
    part.for_channels([&](int i, int e) { x.at[i][e] += more.at[i][e]; });
  }
}

/// The head as its norm reads it: raw, or turned.
template <class Part, class T>
__device__ __forceinline__ typename Part::Values norm_input(const Part& part, const typename Part::Angles& angles,
                                                            const HeadsArgs<T>& a, std::int64_t token, int head) {
  auto x = part.load(raw_head(a.qkv, a, token, head));
  if (a.norm_after_rope) part.turn(x, angles);
  return x;
}

// --- statistics over all heads of q and of k: a block has one token -------------------------------------------------

/// Sums over the channels of all heads of q, and of all heads of k.
struct SectionSums {
  float q = 0.f, k = 0.f;

  /// The sums over the block's threads; `partials`: shared, 32 floats for these sums alone.
  __device__ __forceinline__ SectionSums total(float* partials) const {
    return {row_sum(q, partials), row_sum(k, partials + 16)};
  }
};
/// term(head, in_q) over the heads of q and k of a token, spread over the block's groups of lanes. A head's index
/// counts from q's first.
template <class T, class Term>
__device__ __forceinline__ SectionSums sum_sections(const HeadsArgs<T>& a, int lanes, Term term) {
  SectionSums sums;
  const int groups = static_cast<int>(blockDim.x) / lanes;
  for (int head = thread_index() / lanes; head < a.heads + a.kv_heads; head += groups) {
    const bool in_q = head < a.heads;
    const float sum = term(head, in_q);
    sums.q += in_q ? sum : 0.f;
    sums.k += in_q ? 0.f : sum;
  }
  return sums;
}

/// Statistics of q and of k over all their heads.
struct SectionStatistics {
  HeadStatistics q, k;
  __device__ __forceinline__ HeadStatistics of(bool in_q) const { return in_q ? q : k; }
};
/// `partials`: shared, 64 floats.
template <class Norm, class Part, class T>
__device__ __forceinline__ SectionStatistics section_statistics(const Norm& norm, const Part& part,
                                                                const typename Part::Angles& angles,
                                                                const HeadsArgs<T>& a, std::int64_t token, int lanes,
                                                                float* partials) {
  SectionStatistics s;
  const auto q_width = static_cast<float>(a.heads * a.head_dim), k_width = static_cast<float>(a.kv_heads * a.head_dim);
  if constexpr (Norm::centered) {
    const auto channels = [&](int head, bool) {
      const auto x = norm_input(part, angles, a, token, head);
      float sum = 0.f;
      part.for_channels([&](int i, int e) { sum += x.at[i][e]; });
      return sum;
    };
    const SectionSums sums = sum_sections(a, lanes, channels).total(partials);
    s.q.mean = sums.q / q_width;
    s.k.mean = sums.k / k_width;
  }
  const auto deviations = [&](int head, bool in_q) {
    const auto x = norm_input(part, angles, a, token, head);
    const float mean = s.of(in_q).mean;
    float sum = 0.f;
    part.for_channels([&](int i, int e) { sum += (x.at[i][e] - mean) * (x.at[i][e] - mean); });
    return sum;
  };
  const SectionSums squares = sum_sections(a, lanes, deviations).total(partials + 32);
  s.q.scale = norm.policy.scale(squares.q / q_width);
  s.k.scale = norm.policy.scale(squares.k / k_width);
  return s;
}

}  // namespace typeformer::inline TYPEFORMER_ABI::cuda::detail
