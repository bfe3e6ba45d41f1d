/// Transformer<...>: a composition of policies is a type. This file holds the type, what it says when it is refused,
/// `with`, and EncoderDecoder.
#pragma once
#include <cstdint>

#include "typeformer/policy/check.hpp"

namespace typeformer::inline TYPEFORMER_ABI {
namespace detail {

/// model/parameters.hpp counts them.
template <class Model>
struct ParameterCount;

/// Nothing to explain while a slot holds something else than its policy.
template <bool slots_ok, bool rules_ok, class A, class Model>
struct ExplainRules {};
template <class A, class Model>
struct ExplainRules<true, false, A, Model> : apply_rules<Explained, A> {};
template <class A, class Model>  // the model's own rules hold: one of its kinds of layers breaks one
struct ExplainRules<true, true, A, Model> : Layers<Model, A::pattern>::Explain {};
template <bool slots_ok, class A>
constexpr bool own_rules_ok() {
  if constexpr (slots_ok)
    return apply_rules<RuleList, A>::ok;
  else
    return false;
}

template <Dims D, auto Norm, auto Activation, auto Position, auto Attention, auto Layout, auto... Options>
struct Rejected : ExplainRules<slots_ok<D, Norm, Activation, Position, Attention, Layout, Options...>,
                               own_rules_ok<slots_ok<D, Norm, Activation, Position, Attention, Layout, Options...>,
                                            Arguments<D, Norm, Activation, Position, Attention, Layout, Options...>>(),
                               Arguments<D, Norm, Activation, Position, Attention, Layout, Options...>,
                               Transformer<D, Norm, Activation, Position, Attention, Layout, Options...>> {
  static constexpr bool is_composition = false;
  static constexpr auto pattern = UniformLayers{};
  static_assert(
      NormPolicy<policy_t<Norm>>,
      "argument 2 must be a norm such as RMSNorm{} or LayerNorm{}: every block normalizes its rows. Your own needs "
      "centered, gain, bias, scale, normalize and normalize_backward.");
  static_assert(
      ActivationPolicy<policy_t<Activation>>,
      "argument 3 must be an activation such as SwiGLU{} or GELU{}: the feed-forward network needs one. Your own needs "
      "gated, a call operator and its derivative (derivative_gate and derivative_up when gated).");
  static_assert(PositionPolicy<policy_t<Position>>,
                "argument 4 must be a position policy such as RoPE{} or ALiBi{}: the order of tokens has to come from "
                "somewhere. Your own needs acts_on; NoPosition{} is one too.");
  static_assert(
      AttentionPolicy<policy_t<Attention>>,
      "argument 5 must be an attention policy such as GQA{.heads = 32, .kv_heads = 8} or MHA(32): heads have to be "
      "counted. Your own needs heads, kv_heads, head_dim, scale and softcap.");
  static_assert(
      BlockLayout<policy_t<Layout>>,
      "argument 6 must be a block layout such as PreNorm{} or PostNorm{}: norms and residuals need a place. Your own "
      "needs norm_input, norm_output, norm_sum, parallel and final_norm.");
  static_assert(
      (is_option<policy_t<Options>> && ...),
      "arguments after the sixth must be options such as TiedEmbeddings{}, SlidingWindow{512} or Name{\"...\"}: "
      "anything else has no meaning there. Remove it, or give it the members of an option in policy/options.hpp "
      "(with<> "
      "puts here what lacks a member of its slot's policy).");
  static_assert(options_differ<Options...>,
                "each option must be given once: two of one kind contradict each other. Remove one of them, or use "
                "with<...> to replace it.");
};

template <Dims D, auto Norm, auto Activation, auto Position, auto Attention, auto Layout, auto... Options>
struct Accepted : Arguments<D, Norm, Activation, Position, Attention, Layout, Options...> {
  using A = Arguments<D, Norm, Activation, Position, Attention, Layout, Options...>;
  static constexpr bool is_composition = true;
  static constexpr std::string_view name = std::string_view(A::name_option.name);
  static constexpr int heads = Attention.heads, kv_heads = Attention.kv_heads;
  static constexpr int head_dim = head_dim_of<A>;
  static constexpr int q_width = heads * head_dim, kv_width = kv_heads * head_dim;  ///< channels of all heads
  static constexpr int qkv_width = q_width + 2 * kv_width;
  static constexpr int ffn_in_width = (policy_t<Activation>::gated ? 2 : 1) * D.d_ff;  ///< gate | up, or up
  static constexpr float score_scale = Attention.scale != 0.f ? Attention.scale : dot_product_scale(head_dim);
  static constexpr int layer_kinds = policy_t<A::pattern>::kinds;
  /// The kind of a layer: 0 .. layer_kinds - 1.
  static constexpr int layer_kind(int layer) { return A::pattern.kind(layer); }
};

/// A model with one slot or option replaced, or the option appended.
template <class Model, auto New>
struct With;
template <Dims D, auto Norm, auto Activation, auto Position, auto Attention, auto Layout, auto... Options, auto New>
struct With<Transformer<D, Norm, Activation, Position, Attention, Layout, Options...>, New> {
  static constexpr bool replaces =
      slot_of<policy_t<New>>() <= Slot::layout || count_of<slot_of<policy_t<New>>(), Options...> == 1;
  template <bool replace, class Unused = void>
  struct Choose {
    using type =
        Transformer<replaced<New, D>(), replaced<New, Norm>(), replaced<New, Activation>(), replaced<New, Position>(),
                    replaced<New, Attention>(), replaced<New, Layout>(), replaced<New, Options>()...>;
  };
  template <class Unused>
  struct Choose<false, Unused> {
    using type = Transformer<D, Norm, Activation, Position, Attention, Layout, Options..., New>;
  };
  using type = typename Choose<replaces>::type;
};

template <class Model, auto... News>
struct WithAll {
  using type = Model;
};
template <class Model, auto First, auto... Rest>
struct WithAll<Model, First, Rest...> : WithAll<typename With<Model, First>::type, Rest...> {};

/// A model without its layer pattern.
template <class Model>
struct Uniform;
template <Dims D, auto Norm, auto Activation, auto Position, auto Attention, auto Layout, auto... Options>
struct Uniform<Transformer<D, Norm, Activation, Position, Attention, Layout, Options...>>
    : WithAll<Transformer<D, Norm, Activation, Position, Attention, Layout, replaced<UniformLayers{}, Options>()...>> {
};

template <class Model, auto... News>
struct ChangedLayer<Model, Changes<News...>> : WithAll<typename Uniform<Model>::type, News...> {};

}  // namespace detail

/// A transformer architecture as a type. Slots in this order: Dims, NormPolicy, ActivationPolicy, PositionPolicy,
/// AttentionPolicy, BlockLayout; then options in any order (policy/options.hpp, masks, QKNorm).
/// Equal arguments are the same type. A composition that breaks a rule does not compile and says why.
template <Dims D, auto Norm, auto Activation, auto Position, auto Attention, auto Layout, auto... Options>
struct Transformer
    : std::conditional_t<composes<D, Norm, Activation, Position, Attention, Layout, Options...>,
                         detail::Accepted<D, Norm, Activation, Position, Attention, Layout, Options...>,
                         detail::Rejected<D, Norm, Activation, Position, Attention, Layout, Options...>> {
  /// This model with one slot, option or Dims replaced (or the option added): `Base::with<LayerNorm{}>`.
  template <auto New>
  using with = typename detail::With<Transformer, New>::type;

  /// Trained numbers, tied ones once, without padding (defined by model/parameters.hpp).
  static constexpr std::int64_t parameter_count = detail::ParameterCount<Transformer>::value;

  /// The layers of one kind, as a uniform composition of their own; the model itself when it is uniform.
  template <int kind>
  using Layer = detail::layer_of<Transformer, Transformer::pattern, kind>;
};

/// A composition that was accepted, or a type derived from one.
template <class M>
concept Composition = requires {
  requires M::is_composition;
};

/// An encoder whose output a decoder attends to (Vaswani et al. 2017, figure 1; T5). Both read one embedding table.
/// The encoder loses its head and the decoder gains cross-attention.
template <class EncoderStack, class DecoderStack>
struct EncoderDecoder
    : detail::stacks_share_width_and_vocabulary<EncoderStack::dims.d_model == DecoderStack::dims.d_model,
                                                EncoderStack::dims.vocab == DecoderStack::dims.vocab>::
          template explain<
              detail::stacks_share_width_and_vocabulary<EncoderStack::dims.d_model == DecoderStack::dims.d_model,
                                                        EncoderStack::dims.vocab == DecoderStack::dims.vocab>::ok> {
  using Encoder = typename EncoderStack::template with<NoHead{}>;
  using Decoder = std::conditional_t<DecoderStack::cross_attention, DecoderStack,
                                     typename DecoderStack::template with<CrossAttention<>{}>>;
  static constexpr bool is_encoder_decoder = true;
  static constexpr std::int64_t parameter_count = detail::ParameterCount<EncoderDecoder>::value;
  static constexpr std::string_view name = DecoderStack::name;
};

/// An EncoderDecoder of two accepted stacks, or a type derived from one.
template <class M>
concept EncoderDecoderComposition = requires {
  requires M::is_encoder_decoder;
};

}  // namespace typeformer
