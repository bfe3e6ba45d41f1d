/// Attention's kernels, instantiated for the tests: one number type in each of the files that include this.
#pragma once
#include <stdexcept>
#include <string>
#include <type_traits>

#include "arrays.hpp"
#include "attention.hpp"

namespace user {

/// A mask of a user's own, without span: every third key up to the query.
struct EveryThird {
  TYPEFORMER_HD bool sees(int query, int key, const typeformer::MaskData&) const {
    return key <= query && (query - key) % 3 == 0;
  }
};

}  // namespace user

namespace attention {

using support::Array;

inline std::vector<typeformer::Segment> segments_of(const Problem& p) {
  std::vector<typeformer::Segment> segments;
  for (const Sequence& s : p.sequences) {
    typeformer::Segment segment;
    segment.query_row = s.query_row;
    segment.key_row = s.key_row;
    segment.queries = s.queries;
    segment.keys = s.keys;
    segment.first_position = s.first_position;
    segment.ring = s.ring;
    segment.mask.prefix = s.prefix;
    segments.push_back(segment);
  }
  return segments;
}

template <class T>
struct Arrays {
  Arrays(typeformer::cuda::Device& on, const Problem& p, const Inputs& in)
      : q(on, in.q, p.shift), k(on, in.k, p.shift), v(on, in.v, p.shift),
        d_o(on, p.backward ? in.d_o : std::vector<double>(), p.shift), o(on, in.q.size(), p.shift),
        dq(on, p.backward ? in.q.size() : 0, p.shift), dk(on, gradient_size(p), p.shift),
        dv(on, gradient_size(p), p.shift), lse(on, static_cast<std::size_t>(p.query_rows * p.heads)),
        dtable(on, in.dtable_before), host_segments(segments_of(p)), segments(on, host_segments) {}
  static std::size_t gradient_size(const Problem& p) {
    return p.backward ? static_cast<std::size_t>(p.key_rows * p.kv_heads * p.head_dim) : 0;
  }
  Array<T> q, k, v, d_o, o, dq, dk, dv;
  Array<float> lse, dtable;
  std::vector<typeformer::Segment> host_segments;
  typeformer::Buffer<typeformer::cuda::Device, typeformer::Segment> segments;
};

/// Calls body with the padded head_dim, which must be one of `depths`.
template <int... depths, class Body>
void at_depth(int head_dim, const Body& body) {
  const int depth = typeformer::cuda::detail::attention_depth(head_dim);
  const auto call = [&](auto one) {
    if (depth == one) body(one);
    return depth == one;
  };
  if (!(call(std::integral_constant<int, depths>{}) || ...))
    throw std::logic_error("attention tests: run_number lists no tiles of depth " + std::to_string(depth) +
                           " for this mask and score");
}

/// The public functions where no depths of tiles are listed, else what they call at those depths: the tests run few
/// masks and scores at every depth, and kernels that nothing launches cost half of the time that compilers take.
template <class T, int... depths, class Mask, class Score>
Results run_form(typeformer::cuda::Device& on, const Mask& mask, const Score& score, const Problem& p,
                 const Inputs& in) {
  Arrays<T> arrays(on, p, in);
  for (auto& segment : arrays.host_segments)
    if (p.grown) segment.keys = segment.queries, segment.first_position = 0;
  typeformer::AttendArgs<T> a;
  a.o = arrays.o.data();
  a.q = arrays.q.data();
  a.k = arrays.k.data();
  a.v = arrays.v.data();
  a.lse = p.keeps_lse ? arrays.lse.data() : nullptr;
  a.segments = arrays.segments.data();
  a.host_segments = arrays.host_segments.data();
  a.segment_count = static_cast<int>(arrays.host_segments.size());
  a.heads = p.heads;
  a.kv_heads = p.kv_heads;
  a.head_dim = p.head_dim;
  a.kv_stride = p.kv_stride;
  namespace detail = typeformer::cuda::detail;
  if constexpr (sizeof...(depths) > 0) {
    detail::check_attend("attend", a);
    at_depth<depths...>(a.head_dim, [&](auto depth) { detail::attend_at<depth()>(on, mask, score, a); });
  } else {
    attend(on, mask, score, a);
  }
  Results results;
  results.o = arrays.o.download();
  results.lse = arrays.lse.download();
  if (!p.backward) return results;
  typeformer::AttendBackwardArgs<T> b;
  b.dq = arrays.dq.data();
  b.dk = arrays.dk.data();
  b.dv = arrays.dv.data();
  b.dtable = Score::Bias::trained && p.table_gradient ? arrays.dtable.data() : nullptr;
  b.d_o = arrays.d_o.data();
  b.forward = a;
  if constexpr (sizeof...(depths) > 0) {
    detail::check_attend_backward("attend_backward", b);
    at_depth<depths...>(a.head_dim, [&](auto depth) { detail::attend_backward_at<depth()>(on, mask, score, b); });
  } else {
    attend_backward(on, mask, score, b);
  }
  results.dq = arrays.dq.download();
  results.dk = arrays.dk.download();
  results.dv = arrays.dv.download();
  if (Score::Bias::trained) results.dtable = arrays.dtable.download();
  return results;
}

template <bool capped, class Bias>
typeformer::ScoreForm<capped, Bias> score_of(const Problem& p, const Bias& bias) {
  return {static_cast<float>(p.scale), static_cast<float>(p.cap), bias};
}

/// The forms that the tests need, not every mask with every score at every depth.
template <class T>
Results run_number(const Problem& p, const Inputs& in) {
  using namespace typeformer;
  cuda::Device on;
  if (p.grid_limit) on.set_grid_limit(p.grid_limit);
  const auto plain = score_of<false>(p, NoBias{});
  Array<float> table(on, in.table);
  const Buffer<cuda::Device, std::int32_t> rows(on, std::span<const std::int32_t>(p.table_rows));
  const TableBiasForm bias{table.data(), rows.data(), static_cast<int>(p.table_rows.size() / 2)};
#if defined(TYPEFORMER_TEST_FEW_FORMS)
  if constexpr (sizeof(T) == sizeof(float))
    if (p.bias == "table") return run_form<T, 32>(on, Bidirectional{}, score_of<false>(p, bias), p, in);
  return run_form<T, 32>(on, Causal{}, plain, p, in);
#else
  const auto capped = score_of<true>(p, NoBias{});
  if (p.bias == "alibi") return run_form<T, 32, 64>(on, Causal{}, score_of<false>(p, FormulaBiasForm<ALiBi>{}), p, in);
  if (p.bias == "table" && p.mask == "causal") return run_form<T, 32>(on, Causal{}, score_of<false>(p, bias), p, in);
  if (p.bias == "table") return run_form<T, 32>(on, Bidirectional{}, score_of<false>(p, bias), p, in);
  if (p.mask == "window" && p.cap > 0) return run_form<T, 32, 64>(on, SlidingWindow{p.window}, capped, p, in);
  if (p.mask == "window") return run_form<T, 32>(on, SlidingWindow{p.window}, plain, p, in);
  if (p.mask == "bidirectional") return run_form<T, 32, 64>(on, Bidirectional{}, plain, p, in);
  if (p.mask == "chunked") return run_form<T, 32>(on, Chunked{p.window}, plain, p, in);
  if (p.mask == "prefix") return run_form<T, 32>(on, PrefixCausal{}, plain, p, in);
  if (p.mask == "every_third") return run_form<T, 32>(on, user::EveryThird{}, plain, p, in);
  if (p.cap > 0) return run_form<T, 32, 64>(on, Causal{}, capped, p, in);
  return run_form<T>(on, Causal{}, plain, p, in);
#endif
}

Results run_f32(const Problem& p, const Inputs& in);
Results run_bf16(const Problem& p, const Inputs& in);

}  // namespace attention
