/// The check of a Transformer's arguments: `composes<...>`, its own rules and those of its kinds of layers.
#pragma once
#include <limits>

#include "typeformer/policy/rules.hpp"

namespace typeformer::inline TYPEFORMER_ABI {

template <Dims D, auto Norm, auto Activation, auto Position, auto Attention, auto Layout, auto... Options>
struct Transformer;

namespace detail {

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
  static constexpr auto embedding_norm =
      option_or<Slot::embedding_norm, EmbeddingNorm<NoNorm{}>{}, Options...>().embedding_norm;
  static constexpr auto pattern = option_or<Slot::pattern, UniformLayers{}, Options...>();
  static constexpr auto name_option = option_or<Slot::name, Name{"unnamed"}, Options...>();
  static constexpr bool tied = option_or<Slot::tie, TiedEmbeddings{false}, Options...>().tied;
  static constexpr bool has_head = !option_or<Slot::head, NoHead{false}, Options...>().no_head;
  static constexpr bool cross_attention =
      option_or<Slot::cross_attention, CrossAttention<>{false}, Options...>().cross_attention;
  static constexpr auto cross_mask = option_or<Slot::cross_attention, CrossAttention<>{false}, Options...>().cross_mask;
  /// Factor of the token embeddings (1: none).
  static constexpr float embedding_scale =
      option_or<Slot::embedding_scale, EmbeddingScale{1.f}, Options...>().of(D.d_model);
  /// Factor of the logits (1: none).
  static constexpr float logit_scale = option_or<Slot::logit_scale, LogitScale{1.f}, Options...>().of(D.d_model);
  /// Soft-cap of the logits (0: none).
  static constexpr float final_softcap = option_or<Slot::final_softcap, FinalSoftcap{0.f}, Options...>().final_cap;
};

template <bool... ok>
constexpr bool all = (ok && ...);
template <Dims D, auto Norm, auto Activation, auto Position, auto Attention, auto Layout, auto... Options>
constexpr bool slots_ok =
    all<NormPolicy<policy_t<Norm>>, ActivationPolicy<policy_t<Activation>>, PositionPolicy<policy_t<Position>>,
        AttentionPolicy<policy_t<Attention>>, BlockLayout<policy_t<Layout>>, (is_option<policy_t<Options>> && ...),
        options_differ<Options...>>;

template <class P>
constexpr bool complete_position = P::acts_on == ActsOn::nothing || RotaryPosition<P> || FormulaPosition<P> ||
                                   TablePosition<P> || FormulaBias<P> || TableBias<P>;
template <class A>
constexpr int head_dim_of = A::attention.head_dim > 0 ? A::attention.head_dim
                            : A::attention.heads > 0  ? A::dims.d_model / A::attention.heads
                                                      : 0;
template <class A>
constexpr int rotary_width_of() {
  if constexpr (RotaryPosition<policy_t<A::position>>)
    return A::position.rotary_width(head_dim_of<A>);
  else
    return 0;
}
template <class A>
constexpr bool theta_ok() {
  if constexpr (requires { A::position.theta; })
    return A::position.theta > 1.f;
  else
    return true;
}
template <auto Position>
constexpr bool base_ok() {
  if constexpr (std::is_same_v<policy_t<Position>, Sinusoidal>)
    return Position.base > 0.f;
  else
    return true;
}
constexpr bool softcap_ok(float cap) { return cap >= 0.f && cap <= std::numeric_limits<float>::max(); }

template <auto Norm>
constexpr bool eps_ok() {
  if constexpr (requires { Norm.eps; })
    return Norm.eps >= 0.f;
  else
    return true;
}
template <auto Position>
constexpr bool scaling_ok() {
  if constexpr (requires { RopeScaling{Position.scaling}; })
    return Position.scaling.fits();
  else
    return true;
}
template <auto Mask>
constexpr int visible_keys() {  // -1: none, 0: no bound
  if constexpr (requires { Mask.reach(); })
    return Mask.reach() > 0 ? Mask.reach() : -1;
  else
    return 0;
}
template <auto Pattern>
constexpr int period_of() {
  if constexpr (requires { Pattern.period; })
    return Pattern.period;
  else
    return 1;
}
template <auto Pattern>
constexpr int locals_of() {
  if constexpr (requires { Pattern.locals; })
    return Pattern.locals;
  else
    return 0;
}
template <auto Pattern>
constexpr bool constant_kinds_in_range(int layers) {
  for (int layer = 0; layer < layers; ++layer)
    if (Pattern.kind(layer) < 0 || Pattern.kind(layer) >= policy_t<Pattern>::kinds) return false;
  return true;
}
template <int>
struct ConstantKind;  // not std::integral_constant: nvcc would write this expression wherever that stands for 0
template <auto Pattern>
concept ConstantKinds = requires {
  typename ConstantKind<Pattern.kind(0)>;
};
template <class>
constexpr bool is_changes = false;
template <auto... News>
constexpr bool is_changes<Changes<News...>> = true;
/// Every kind changes the model by a Changes<...>.
template <class Pattern, int... kind>
constexpr bool kinds_change(std::integer_sequence<int, kind...>) {
  return (is_changes<typename Pattern::template changes<kind>> && ...);
}
template <auto Pattern>
constexpr bool kinds_in_range(int layers) {
  if constexpr (period_of<Pattern>() < 1)
    return true;  // another rule's matter
  else if constexpr (!ConstantKinds<Pattern>)
    return false;
  else if constexpr (policy_t<Pattern>::kinds < 1)
    return false;
  else if constexpr (!kinds_change<policy_t<Pattern>>(std::make_integer_sequence<int, policy_t<Pattern>::kinds>{}))
    return false;
  else
    return constant_kinds_in_range<Pattern>(layers);
}
template <auto Position>
constexpr auto buckets_rule() {
  if constexpr (std::is_same_v<policy_t<Position>, T5Buckets>)
    return buckets_reach_the_distance<Position.buckets, Position.max_distance, Position.bidirectional>{};
  else
    return buckets_reach_the_distance<32, 128, false>{};
}
template <auto Position>
constexpr int table_offset() {
  if constexpr (TablePosition<policy_t<Position>>)
    return Position.offset;
  else
    return 0;
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
    rope_turns_slower_with_each_pair<theta_ok<A>()>, rope_scaling_stretches_the_context<scaling_ok<A::position>()>,
    sinusoids_come_in_pairs<std::is_same_v<policy_t<A::position>, Sinusoidal> ? A::dims.d_model : 0,
                            base_ok<A::position>()>,
    position_table_begins_at_its_first_row<table_offset<A::position>()>, decltype(buckets_rule<A::position>()),
    mask_lets_a_query_see_itself<visible_keys<A::mask>()>,
    pattern_fits_its_period<period_of<A::pattern>(), locals_of<A::pattern>()>,
    pattern_gives_each_layer_a_kind<policy_t<A::pattern>::kinds, kinds_in_range<A::pattern>(A::dims.n_layers)>,
    logits_need_a_head<A::has_head, A::tied || A::logit_scale != 1.f || A::final_softcap != 0.f || A::biases.head>,
    eps_keeps_the_root_real<eps_ok<A::norm>() && eps_ok<A::qk_norm.norm>() && eps_ok<A::embedding_norm>()>,
    softcaps_are_finite<softcap_ok(A::attention.softcap) && softcap_ok(A::final_softcap)>,
    norm_on_the_sum_stands_alone<A::layout.norm_sum, A::layout.norm_input || A::layout.norm_output, A::layout.parallel>,
    parallel_branches_read_a_norm<A::layout.parallel, A::layout.norm_input>,
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
constexpr bool stack_stays =
    all<A::dims.vocab == L::dims.vocab, A::dims.d_model == L::dims.d_model, A::dims.n_layers == L::dims.n_layers,
        A::dims.max_seq == L::dims.max_seq, A::tied == L::tied, A::has_head == L::has_head,
        A::biases.head == L::biases.head, A::cross_attention == L::cross_attention,
        A::embedding_scale == L::embedding_scale, A::logit_scale == L::logit_scale,
        A::final_softcap == L::final_softcap, std::is_same_v<Fixed<A::embedding_norm>, Fixed<L::embedding_norm>>,
        std::is_same_v<Fixed<A::position>, Fixed<L::position>> ||
            (policy_t<L::position>::acts_on != ActsOn::embedding && !TableBias<policy_t<L::position>>),
        !TableBias<policy_t<L::position>> || A::attention.heads == L::attention.heads>;

/// What the kinds of layers of a pattern say together.
template <class Model, auto Pattern, class Kinds = std::make_integer_sequence<int, policy_t<Pattern>::kinds>>
struct Layers;
template <class Model, auto Pattern, int... kind>
struct Layers<Model, Pattern, std::integer_sequence<int, kind...>> {
  template <class Layer>
  static constexpr bool layer_ok() {
    if constexpr (std::is_same_v<Layer, Model>)
      return true;
    else if constexpr (model_composes<Layer>)
      return stack_stays<ArgumentsOf<Model>, ArgumentsOf<Layer>>;
    else
      return false;
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

}  // namespace detail
}  // namespace typeformer
