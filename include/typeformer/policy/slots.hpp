/// Which argument of a Transformer a policy is: how options are found in any order and replaced by `with`.
#pragma once
#include "typeformer/core/fixed.hpp"
#include "typeformer/policy/activation.hpp"
#include "typeformer/policy/attention.hpp"
#include "typeformer/policy/layout.hpp"
#include "typeformer/policy/mask.hpp"
#include "typeformer/policy/norm.hpp"
#include "typeformer/policy/options.hpp"
#include "typeformer/policy/position.hpp"

namespace typeformer::inline TYPEFORMER_ABI {

/// Sizes shared by every slot. Counts of elements, never bytes.
struct Dims {
  int vocab = 0;    ///< rows of the embedding table
  int d_model = 0;  ///< width of the residual stream
  int n_layers = 0;
  int d_ff = 0;     ///< inner width of the feed-forward network (of each branch when gated)
  int max_seq = 0;  ///< positions the model was made for
};

namespace detail {

enum class Slot {
  dims,
  norm,
  activation,
  position,
  attention,
  layout,  // the first six arguments, in this order
  mask,
  qk_norm,
  tie,
  head,
  biases,
  embedding_scale,
  embedding_norm,
  logit_scale,
  final_softcap,
  cross_attention,
  pattern,
  name,
  unknown
};

/// The slot that a policy of type P fills.
template <class P>
constexpr Slot slot_of() {
  if constexpr (std::is_same_v<P, Dims>)
    return Slot::dims;
  else if constexpr (NormPolicy<P>)
    return Slot::norm;
  else if constexpr (ActivationPolicy<P>)
    return Slot::activation;
  else if constexpr (PositionPolicy<P>)
    return Slot::position;
  else if constexpr (AttentionPolicy<P>)
    return Slot::attention;
  else if constexpr (BlockLayout<P>)
    return Slot::layout;
  else if constexpr (MaskPolicy<P>)
    return Slot::mask;
  else if constexpr (QKNormOption<P>)
    return Slot::qk_norm;
  else if constexpr (TieOption<P>)
    return Slot::tie;
  else if constexpr (HeadOption<P>)
    return Slot::head;
  else if constexpr (BiasOption<P>)
    return Slot::biases;
  else if constexpr (EmbeddingScaleOption<P>)
    return Slot::embedding_scale;
  else if constexpr (EmbeddingNormOption<P>)
    return Slot::embedding_norm;
  else if constexpr (LogitScaleOption<P>)
    return Slot::logit_scale;
  else if constexpr (FinalSoftcapOption<P>)
    return Slot::final_softcap;
  else if constexpr (CrossAttentionOption<P>)
    return Slot::cross_attention;
  else if constexpr (LayerPattern<P>)
    return Slot::pattern;
  else if constexpr (NameOption<P>)
    return Slot::name;
  else
    return Slot::unknown;
}

template <class P>
constexpr bool is_option = (slot_of<P>() > Slot::layout) && (slot_of<P>() < Slot::unknown);

/// The option that fills `slot`, or Default.
template <Slot slot, auto Default>
constexpr auto option_or() {
  return Default;
}
template <Slot slot, auto Default, auto First, auto... Rest>
constexpr auto option_or() {
  if constexpr (slot_of<policy_t<First>>() == slot)
    return First;
  else
    return option_or<slot, Default, Rest...>();
}

/// New when it fills Old's slot, else Old.
template <auto New, auto Old>
constexpr auto replaced() {
  if constexpr (slot_of<policy_t<New>>() != Slot::unknown && slot_of<policy_t<New>>() == slot_of<policy_t<Old>>())
    return New;
  else
    return Old;
}

/// How many of the options fill `slot`.
template <Slot slot, auto... Options>
constexpr int count_of = ((slot_of<policy_t<Options>>() == slot ? 1 : 0) + ... + 0);

/// True when no two options fill the same slot.
template <auto... Options>
constexpr bool options_differ = ((count_of<slot_of<policy_t<Options>>(), Options...> == 1) && ...);

}  // namespace detail
}  // namespace typeformer
