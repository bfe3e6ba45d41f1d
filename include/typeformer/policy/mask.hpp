/// Which keys a query sees: an option of a Transformer (Causal{} without one).
#pragma once
#include <concepts>

#include "typeformer/core/annotate.hpp"

namespace typeformer::inline TYPEFORMER_ABI {

/// Run-time data of one sequence that masks may read.
struct MaskData {
  int prefix = 0;  ///< leading positions that all see each other (PrefixCausal)
};

/// What a tile of queries sees: no key outside [begin, end), and every one of them all of [full_begin, full_end).
/// A range whose begin is not below its end is empty.
struct KeySpan {
  int begin = 0, end = 0;
  int full_begin = 0, full_end = 0;
};

namespace detail {
TYPEFORMER_HD constexpr int smaller(int a, int b) { return a < b ? a : b; }
TYPEFORMER_HD constexpr int larger(int a, int b) { return a > b ? a : b; }
}  // namespace detail

/// Query i sees keys j <= i.
struct Causal {
  TYPEFORMER_HD constexpr bool sees(int query, int key, const MaskData&) const { return key <= query; }
  /// Queries first..last (inclusive) against keys 0..key_count-1.
  TYPEFORMER_HD constexpr KeySpan span(int first, int last, int key_count, const MaskData&) const {
    return {0, detail::smaller(last + 1, key_count), 0, detail::smaller(first + 1, key_count)};
  }
};

/// Every query sees every key: encoders, cross-attention.
struct Bidirectional {
  TYPEFORMER_HD constexpr bool sees(int, int, const MaskData&) const { return true; }
  TYPEFORMER_HD constexpr KeySpan span(int, int, int key_count, const MaskData&) const {
    return {0, key_count, 0, key_count};
  }
};

/// Query i sees keys i - window < j <= i: `window` keys, itself included.
struct SlidingWindow {
  int window = 4096;
  TYPEFORMER_HD constexpr bool sees(int query, int key, const MaskData&) const {
    return key <= query && key > query - window;
  }
  TYPEFORMER_HD constexpr KeySpan span(int first, int last, int key_count, const MaskData&) const {
    return {detail::larger(0, first - window + 1), detail::smaller(last + 1, key_count),
            detail::larger(0, last - window + 1), detail::smaller(first + 1, key_count)};
  }
  constexpr int reach() const { return window; }
};

/// Query i sees keys j <= i of its own chunk, floor(j / chunk) = floor(i / chunk) (Llama 4).
struct Chunked {
  int chunk = 8192;
  TYPEFORMER_HD constexpr bool sees(int query, int key, const MaskData&) const {
    return key <= query && key / chunk == query / chunk;
  }
  TYPEFORMER_HD constexpr KeySpan span(int first, int last, int key_count, const MaskData&) const {
    return {first / chunk * chunk, detail::smaller(last + 1, key_count), last / chunk * chunk,
            detail::smaller(first + 1, key_count)};
  }
  constexpr int reach() const { return chunk; }
};

/// Causal, but the first `prefix` positions of a sequence see each other in both directions (Raffel et al. 2019, fig.
/// 3).
struct PrefixCausal {
  TYPEFORMER_HD constexpr bool sees(int query, int key, const MaskData& data) const {
    return key <= query || key < data.prefix;
  }
  TYPEFORMER_HD constexpr KeySpan span(int first, int last, int key_count, const MaskData& data) const {
    return {0, detail::smaller(detail::larger(last + 1, data.prefix), key_count), 0,
            detail::smaller(detail::larger(first + 1, data.prefix), key_count)};
  }
};

/// What a mask must give: sees(query, key, data), for positions from 0. With span(...) kernels skip what no query of a
/// tile sees; with reach() > 0 the cache forgets keys that no later query sees.
template <class P>
concept MaskPolicy = requires(const P p, int i, const MaskData data) {
  { p.sees(i, i, data) } -> std::same_as<bool>;
};
/// A mask that tells which keys a range of queries can see: see KeySpan.
template <class P>
concept MaskWithSpan = MaskPolicy<P> && requires(const P p, int i, const MaskData data) {
  { p.span(i, i, i, data) } -> std::same_as<KeySpan>;
};

/// The span of any mask: everything, nothing of it full, when the policy does not tell.
template <MaskPolicy Mask>
TYPEFORMER_HD constexpr KeySpan key_span(const Mask& mask, int first, int last, int key_count, const MaskData& data) {
  if constexpr (MaskWithSpan<Mask>)
    return mask.span(first, last, key_count, data);
  else
    return {0, key_count, 0, 0};
}

/// How many of the newest keys a query can see, itself included, as the mask's own reach() says; 0, without one: all of
/// them. A cache need not keep more.
template <MaskPolicy Mask>
constexpr int reach(const Mask& mask) {
  if constexpr (requires {
                  { mask.reach() } -> std::same_as<int>;
                })
    return mask.reach();
  else
    return 0;
}

}  // namespace typeformer
