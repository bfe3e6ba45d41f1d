/// Transformer<...>: a composition of policies is a type. This file holds the type, the check of its arguments, `with`, and
/// EncoderDecoder.
#pragma once
#include <cstdint>

#include "typeformer/policy/rules.hpp"

namespace typeformer::inline TYPEFORMER_ABI {

template <Dims D, auto Norm, auto Activation, auto Position, auto Attention, auto Layout, auto... Options>
struct Transformer;

namespace detail {

/// model/parameters.hpp counts them.
template <class Model>
struct ParameterCount;

/// Every argument of a Transformer by name, options at their defaults where absent. Nothing is checked here.
template <Dims D, auto Norm, auto Activation, auto Position, auto Attention, auto Layout, auto... Options>
struct Arguments {
  static constexpr Dims dims = D;
  static constexpr auto norm = Norm;
  static constexpr auto activation = Activation;
  static constexpr auto position = Position;
  static constexpr auto attention = Attention;
  static constexpr auto layout = Layout;
  static constexpr auto mask = option_or<Slot::mask, Causal{}, Options...>();
  static constexpr auto qk_norm = option_or<Slot::qk_norm, NoQKNorm{}, Options...>();
  static constexpr auto biases = option_or<Slot::biases, Biases{false, false, false, false}, Options...>();
  static constexpr auto embedding_norm = option_or<Slot::embedding_norm, EmbeddingNorm<NoNorm{}>{}, Options...>().embedding_norm;
  static constexpr auto pattern = option_or<Slot::pattern, UniformLayers{}, Options...>();
  static constexpr auto name_option = option_or<Slot::name, Name{"unnamed"}, Options...>();
  static constexpr bool tied = option_or<Slot::tie, TiedEmbeddings{false}, Options...>().tied;
  static constexpr bool has_head = !option_or<Slot::head, NoHead{false}, Options...>().no_head;
  static constexpr bool cross_attention =
      option_or<Slot::cross_attention, CrossAttention{false}, Options...>().cross_attention;
  /// Factor of the token embeddings (1: none).
  static constexpr float embedding_scale = option_or<Slot::embedding_scale, EmbeddingScale{1.f}, Options...>().of(D.d_model);
  /// Factor of the logits (1: none).
  static constexpr float logit_scale = option_or<Slot::logit_scale, LogitScale{1.f}, Options...>().of(D.d_model);
  /// Soft-cap of the logits (0: none).
  static constexpr float final_softcap = option_or<Slot::final_softcap, FinalSoftcap{0.f}, Options...>().final_cap;
};

template <Dims D, auto Norm, auto Activation, auto Position, auto Attention, auto Layout, auto... Options>
constexpr bool slots_ok = NormPolicy<policy_t<Norm>> && ActivationPolicy<policy_t<Activation>> &&
    PositionPolicy<policy_t<Position>> && AttentionPolicy<policy_t<Attention>> && BlockLayout<policy_t<Layout>> &&
    (is_option<policy_t<Options>> && ...) && options_differ<Options...>;

template <class P>
constexpr bool complete_position = P::acts_on == ActsOn::nothing || RotaryPosition<P> || FormulaPosition<P> ||
    TablePosition<P> || FormulaBias<P> || TableBias<P>;
template <class A>
constexpr int head_dim_of = A::attention.head_dim > 0   ? A::attention.head_dim
                            : A::attention.heads > 0    ? A::dims.d_model / A::attention.heads
                                                        : 0;
template <class A>
constexpr int rotary_width_of() {
  if constexpr (RotaryPosition<policy_t<A::position>>) return A::position.rotary_width(head_dim_of<A>);
  else return 0;
}
template <class A>
constexpr bool theta_ok() {
  if constexpr (requires { A::position.theta; }) return A::position.theta > 1.f;
  else return true;
}
template <auto Norm>
constexpr bool eps_ok() {
  if constexpr (requires { Norm.eps; }) return Norm.eps >= 0.f;
  else return true;
}
template <auto Position>
constexpr bool scaling_ok() {
  if constexpr (requires { RopeScaling{Position.scaling}; }) return Position.scaling.fits();
  else return true;
}
template <auto Mask>
constexpr int visible_keys() {  // -1: none, 0: no bound
  if constexpr (requires { Mask.reach(); }) return Mask.reach() > 0 ? Mask.reach() : -1;
  else return 0;
}
template <auto Pattern>
constexpr int period_of() {
  if constexpr (requires { Pattern.period; }) return Pattern.period;
  else return 1;
}
template <auto Pattern>
constexpr int locals_of() {
  if constexpr (requires { Pattern.locals; }) return Pattern.locals;
  else return 0;
}
template <auto Pattern>
constexpr bool kinds_in_range(int layers) {
  if constexpr (period_of<Pattern>() < 1) return true;  // another rule's matter
  for (int layer = 0; layer < layers; ++layer)
    if (Pattern.kind(layer) < 0 || Pattern.kind(layer) >= policy_t<Pattern>::kinds) return false;
  return true;
}
template <auto Position>
constexpr auto buckets_rule() {
  if constexpr (requires { Position.max_distance; Position.bidirectional; })
    return buckets_reach_the_distance<Position.buckets, Position.max_distance, Position.bidirectional>{};
  else
    return buckets_reach_the_distance<32, 128, false>{};
}

/// The rules a composition must keep; as base classes, those that do not hold explain themselves.
template <class... Rule>
struct RuleList {
  static constexpr bool ok = (Rule::ok && ...);
};
template <class... Rule>
struct Explained : Rule::template explain<Rule::ok>... {};

template <template <class...> class Use, class A>
using apply_rules = Use<
    sizes_are_positive<A::dims.vocab, A::dims.d_model, A::dims.n_layers, A::dims.d_ff, A::dims.max_seq>,
    d_model_splits_into_heads<A::dims.d_model, A::attention.heads, A::attention.head_dim>,
    heads_split_over_kv_heads<A::attention.heads, A::attention.kv_heads>,
    rotary_width_is_even<rotary_width_of<A>(), head_dim_of<A>, RotaryPosition<policy_t<A::position>>>,
    rope_turns_slower_with_each_pair<theta_ok<A>()>,
    rope_scaling_stretches_the_context<scaling_ok<A::position>()>,
    sinusoids_come_in_pairs<std::is_same_v<policy_t<A::position>, Sinusoidal> ? A::dims.d_model : 0>,
    decltype(buckets_rule<A::position>()),
    mask_lets_a_query_see_itself<visible_keys<A::mask>()>,
    pattern_fits_its_period<period_of<A::pattern>(), locals_of<A::pattern>()>,
    pattern_gives_each_layer_a_kind<policy_t<A::pattern>::kinds, kinds_in_range<A::pattern>(A::dims.n_layers)>,
    logits_need_a_head<A::has_head, A::tied || A::logit_scale != 1.f || A::final_softcap != 0.f || A::biases.head>,
    eps_keeps_the_root_real<eps_ok<A::norm>() && eps_ok<A::qk_norm.norm>() && eps_ok<A::embedding_norm>()>,
    softcaps_are_not_negative<(A::attention.softcap >= 0.f && A::final_softcap >= 0.f)>,
    position_gives_what_its_place_needs<complete_position<policy_t<A::position>>>>;

template <class Model, class Changes>
struct ChangedLayer;

/// The layers of one kind, as a uniform composition of their own; the model itself when it is uniform.
template <class Model, auto Pattern, int kind>
using layer_of = typename ChangedLayer<Model, typename policy_t<Pattern>::template changes<kind>>::type;

template <class Model>
constexpr bool model_composes = false;  // specialised below for Transformer
template <class Model>
struct ArgumentsOf;  // likewise

/// True when a kind of layers leaves alone what belongs to the whole stack.
template <class A, class L>
constexpr bool stack_stays = A::dims.vocab == L::dims.vocab && A::dims.d_model == L::dims.d_model &&
    A::dims.n_layers == L::dims.n_layers && A::dims.max_seq == L::dims.max_seq && A::tied == L::tied &&
    A::has_head == L::has_head && A::biases.head == L::biases.head && A::embedding_scale == L::embedding_scale &&
    A::logit_scale == L::logit_scale && A::final_softcap == L::final_softcap &&
    std::is_same_v<Fixed<A::embedding_norm>, Fixed<L::embedding_norm>> &&
    (std::is_same_v<Fixed<A::position>, Fixed<L::position>> ||
     (policy_t<L::position>::acts_on != ActsOn::embedding && !TableBias<policy_t<L::position>>));

/// What the kinds of layers of a pattern say together.
template <class Model, auto Pattern, class Kinds = std::make_integer_sequence<int, policy_t<Pattern>::kinds>>
struct Layers;
template <class Model, auto Pattern, int... kind>
struct Layers<Model, Pattern, std::integer_sequence<int, kind...>> {
  template <class Layer>
  static constexpr bool layer_ok() {
    if constexpr (std::is_same_v<Layer, Model>) return true;
    else if constexpr (model_composes<Layer>) return stack_stays<ArgumentsOf<Model>, ArgumentsOf<Layer>>;
    else return false;
  }
  static constexpr bool compose = (model_composes<layer_of<Model, Pattern, kind>> && ...);
  static constexpr bool ok = (layer_ok<layer_of<Model, Pattern, kind>>() && ...);
  template <int k>
  struct Kind : layer_of<Model, Pattern, k> {};
  template <bool compose, bool stays>
  struct Reason : Kind<kind>... {};
  template <bool stays>
  struct Reason<true, stays> : kinds_of_layers_share_a_stack<stays>::template explain<stays> {};
  struct Explain : Reason<compose, ok> {};
};

template <Dims D, auto Norm, auto Activation, auto Position, auto Attention, auto Layout, auto... Options>
constexpr bool rules_ok() {
  using A = Arguments<D, Norm, Activation, Position, Attention, Layout, Options...>;
  if constexpr (apply_rules<RuleList, A>::ok)
    return Layers<Transformer<D, Norm, Activation, Position, Attention, Layout, Options...>, A::pattern>::ok;
  else
    return false;
}

}  // namespace detail

/// True when Transformer<...> accepts these arguments; never a hard error, so that it can stand in a requires-clause.
template <Dims D, auto Norm, auto Activation, auto Position, auto Attention, auto Layout, auto... Options>
inline constexpr bool composes = [] {
  if constexpr (detail::slots_ok<D, Norm, Activation, Position, Attention, Layout, Options...>)
    return detail::rules_ok<D, Norm, Activation, Position, Attention, Layout, Options...>();
  else
    return false;
}();

namespace detail {

template <Dims D, auto Norm, auto Activation, auto Position, auto Attention, auto Layout, auto... Options>
constexpr bool model_composes<Transformer<D, Norm, Activation, Position, Attention, Layout, Options...>> =
    composes<D, Norm, Activation, Position, Attention, Layout, Options...>;
template <Dims D, auto Norm, auto Activation, auto Position, auto Attention, auto Layout, auto... Options>
struct ArgumentsOf<Transformer<D, Norm, Activation, Position, Attention, Layout, Options...>>
    : Arguments<D, Norm, Activation, Position, Attention, Layout, Options...> {};

/// Nothing to explain while a slot holds something else than its policy.
template <bool slots_ok, bool rules_ok, class A, class Model>
struct ExplainRules {};
template <class A, class Model>
struct ExplainRules<true, false, A, Model> : apply_rules<Explained, A> {};
template <class A, class Model>  // the model's own rules hold: one of its kinds of layers breaks one
struct ExplainRules<true, true, A, Model> : Layers<Model, A::pattern>::Explain {};
template <bool slots_ok, class A>
constexpr bool own_rules_ok() {
  if constexpr (slots_ok) return apply_rules<RuleList, A>::ok;
  else return false;
}

template <Dims D, auto Norm, auto Activation, auto Position, auto Attention, auto Layout, auto... Options>
struct Rejected
    : ExplainRules<slots_ok<D, Norm, Activation, Position, Attention, Layout, Options...>,
                   own_rules_ok<slots_ok<D, Norm, Activation, Position, Attention, Layout, Options...>,
                                Arguments<D, Norm, Activation, Position, Attention, Layout, Options...>>(),
                   Arguments<D, Norm, Activation, Position, Attention, Layout, Options...>,
                   Transformer<D, Norm, Activation, Position, Attention, Layout, Options...>> {
  static constexpr bool is_composition = false;
  static constexpr auto pattern = UniformLayers{};
  static_assert(NormPolicy<policy_t<Norm>>,
                "argument 2 must be a norm such as RMSNorm{} or LayerNorm{}: every block normalises its rows. Your own needs "
                "centered, gain, bias, scale, normalize and normalize_backward.");
  static_assert(ActivationPolicy<policy_t<Activation>>,
                "argument 3 must be an activation such as SwiGLU{} or GELU{}: the feed-forward network needs one. Your own needs "
                "gated, a call operator and its derivative (derivative_gate and derivative_up when gated).");
  static_assert(PositionPolicy<policy_t<Position>>,
                "argument 4 must be a position policy such as RoPE{} or ALiBi{}: the order of tokens has to come from "
                "somewhere. Your own needs acts_on; NoPosition{} is one too.");
  static_assert(AttentionPolicy<policy_t<Attention>>,
                "argument 5 must be an attention policy such as GQA{.heads = 32, .kv_heads = 8} or MHA(32): heads have to be "
                "counted. Your own needs heads, kv_heads, head_dim, scale and softcap.");
  static_assert(BlockLayout<policy_t<Layout>>,
                "argument 6 must be a block layout such as PreNorm{} or PostNorm{}: norms and residuals need a place. Your own "
                "needs norm_input, norm_output, norm_sum, parallel and final_norm.");
  static_assert((is_option<policy_t<Options>> && ...),
                "arguments after the sixth must be options such as TiedEmbeddings{}, SlidingWindow{512} or Name{\"...\"}: "
                "anything else has no meaning there. Remove it, or give it the members of an option in policy/options.hpp.");
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
  static constexpr int q_width = heads * head_dim, kv_width = kv_heads * head_dim;   ///< channels of all heads
  static constexpr int qkv_width = q_width + 2 * kv_width;
  static constexpr int ffn_in_width = (policy_t<Activation>::gated ? 2 : 1) * D.d_ff;  ///< gate | up, or up
  static constexpr float score_scale =
      Attention.scale != 0.f ? Attention.scale : static_cast<float>(1 / constant_sqrt(head_dim));
  static constexpr int layer_kinds = policy_t<A::pattern>::kinds;
  /// The kind of a layer: 0 .. layer_kinds - 1.
  static constexpr int layer_kind(int layer) { return A::pattern.kind(layer); }
};

}  // namespace detail

namespace detail {

/// A model with one slot or option replaced, or the option appended.
template <class Model, auto New>
struct With;
template <Dims D, auto Norm, auto Activation, auto Position, auto Attention, auto Layout, auto... Options, auto New>
struct With<Transformer<D, Norm, Activation, Position, Attention, Layout, Options...>, New> {
  static constexpr bool replaces = slot_of<policy_t<New>>() <= Slot::layout || count_of<slot_of<policy_t<New>>(), Options...> == 1;
  template <bool replace, class Unused = void>
  struct Choose {
    using type = Transformer<replaced<New, D>(), replaced<New, Norm>(), replaced<New, Activation>(), replaced<New, Position>(),
                             replaced<New, Attention>(), replaced<New, Layout>(), replaced<New, Options>()...>;
  };
  template <class Unused>
  struct Choose<false, Unused> {
    using type = Transformer<D, Norm, Activation, Position, Attention, Layout, Options..., New>;
  };
  using type = typename Choose<replaces>::type;
};

template <class Model, auto... News>
struct WithAll { using type = Model; };
template <class Model, auto First, auto... Rest>
struct WithAll<Model, First, Rest...> : WithAll<typename With<Model, First>::type, Rest...> {};

/// A model without its layer pattern.
template <class Model>
struct Uniform;
template <Dims D, auto Norm, auto Activation, auto Position, auto Attention, auto Layout, auto... Options>
struct Uniform<Transformer<D, Norm, Activation, Position, Attention, Layout, Options...>>
    : WithAll<Transformer<D, Norm, Activation, Position, Attention, Layout, replaced<UniformLayers{}, Options>()...>> {};

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
concept Composition = requires { requires M::is_composition; };

/// An encoder whose output a decoder attends to (Vaswani et al. 2017, figure 1; T5). Both read one embedding table.
/// The encoder loses its head and the decoder gains cross-attention.
template <class EncoderStack, class DecoderStack>
struct EncoderDecoder
    : detail::stacks_share_width_and_vocabulary<EncoderStack::dims.d_model == DecoderStack::dims.d_model,
                                                EncoderStack::dims.vocab == DecoderStack::dims.vocab>::
          template explain<detail::stacks_share_width_and_vocabulary<
              EncoderStack::dims.d_model == DecoderStack::dims.d_model,
              EncoderStack::dims.vocab == DecoderStack::dims.vocab>::ok> {
  using Encoder = typename EncoderStack::template with<NoHead{}>;
  using Decoder = typename DecoderStack::template with<CrossAttention{}>;
  static constexpr bool is_encoder_decoder = true;
  static constexpr std::int64_t parameter_count = detail::ParameterCount<EncoderDecoder>::value;
  static constexpr std::string_view name = DecoderStack::name;
};

template <class M>
concept EncoderDecoderComposition = requires { requires M::is_encoder_decoder; };

}  // namespace typeformer
