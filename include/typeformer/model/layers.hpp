/// From a layer's index to its composition: the one place where run-time layers meet compile-time kinds.
#pragma once
#include <utility>

#include "typeformer/policy/composition.hpp"

namespace typeformer::inline TYPEFORMER_ABI::detail {

template <class M, class F, int... kind>
constexpr void visit_kind(int wanted, F&& f, std::integer_sequence<int, kind...>) {
  ((wanted == kind ? f.template operator()<typename M::template Layer<kind>, kind>() : void()), ...);
}

/// Calls f.operator()<L, kind>() with the composition L of layer `layer` and its kind.
template <class M, class F>
constexpr void with_layer(int layer, F&& f) {
  visit_kind<M>(M::layer_kind(layer), f, std::make_integer_sequence<int, M::layer_kinds>{});
}

/// Calls f.operator()<L, kind>() once for every kind of layer.
template <class M, class F>
constexpr void for_each_kind(F&& f) {
  for (int kind = 0; kind < M::layer_kinds; ++kind)
    visit_kind<M>(kind, f, std::make_integer_sequence<int, M::layer_kinds>{});
}

/// A parallel block whose branches read one norm: q, k, v and the feed-forward network's input lie side by side ...
template <class L>
constexpr bool shares_input = L::layout.parallel&& shares_norm<L::layout>();
/// ... and one product makes them, unless only some of them have biases.
template <class L>
constexpr bool one_product = shares_input<L>&& L::biases.qkv == L::biases.feed_forward;

}  // namespace typeformer
