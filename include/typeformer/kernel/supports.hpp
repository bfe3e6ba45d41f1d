/// Does a device have every operation of the contract that a model needs? As a bool for constraints, and with one
/// sentence per missing operation for static_assert.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "typeformer/kernel/activation_type.hpp"
#include "typeformer/kernel/contract.hpp"
#include "typeformer/policy/composition.hpp"

namespace typeformer::inline TYPEFORMER_ABI {

/// What a device has to do for a model: run it, or also train it.
enum class Use { inference, training };

namespace detail {

template <auto Position>
constexpr auto bias_form_type() {
  using P = policy_t<Position>;
  if constexpr (FormulaBias<P>)
    return std::type_identity<FormulaBiasForm<P>>{};
  else if constexpr (TableBias<P>)
    return std::type_identity<TableBiasForm>{};
  else
    return std::type_identity<NoBias>{};
}
/// The type of a layer's score, of cross-attention's, and of its rotation, as kernels see them.
template <class L>
using ScoreOf = ScoreForm<(L::attention.softcap > 0.f), typename decltype(bias_form_type<L::position>())::type>;
template <class L>
using CrossScoreOf = ScoreForm<(L::attention.softcap > 0.f), NoBias>;
template <auto Position>
constexpr Pairs pairs_of() {
  if constexpr (RotaryPosition<policy_t<Position>>)
    return Position.pairs;
  else
    return Pairs::halves;
}
template <class L>
using RotationOf = Rotation<pairs_of<L::position>()>;

// One struct per operation. given<D, W, S, L>(): stack S has no need of it in layers of composition L, or device D has
// it for their policies and weights of type W. Unqualified calls in a requires-expression find what the model's passes
// find: functions beside the device.

struct GivesMemory {
  static constexpr std::string_view name = "memory";
  template <class D, class W, class S, class L>
  static constexpr bool given() {
    return requires(D & on, void* p, const void* from, std::size_t bytes) {
      static_cast<float*>(on.allocate(bytes));
      on.release(p);
      on.upload(p, from, bytes);
      on.download(p, from, bytes);
      on.zero(p, bytes);
    };
  }
  template <bool passed>
  struct explain {
    static_assert(passed,
                  "a device must have memory: weights, caches and activations live there. Give the class members "
                  "allocate(bytes), release(pointer), upload, download(to, from, bytes) and zero(pointer, bytes).");
  };
};

struct GivesGatherRows {
  static constexpr std::string_view name = "gather_rows";
  template <class D, class W, class S, class L>
  static constexpr bool given() {
    if constexpr (FormulaPosition<policy_t<S::position>>)
      if (!requires(D & on, const GatherArgs<activation_t<D, W>, float>& a) { gather_rows(on, a); }) return false;
    using A = activation_t<D, W>;
    return requires(D & on, const GatherArgs<A, W>& tokens, const GatherArgs<A, A>& last_rows) {
      gather_rows(on, tokens);
      gather_rows(on, last_rows);
    };
  }
  template <bool passed>
  struct explain {
    static_assert(passed,
                  "the device must have gather_rows: token ids become rows of the embedding table. Write "
                  "gather_rows(Device&, const GatherArgs<T, W>&) beside the device's other operations.");
  };
};

template <class S, class L>
constexpr bool uses_norms = L::layout.norm_input || L::layout.norm_output || L::layout.norm_sum || S::layout.final_norm;
template <class S>
constexpr bool uses_embedding_norm = !std::is_same_v<policy_t<S::embedding_norm>, NoNorm>;

struct GivesNormRows {
  static constexpr std::string_view name = "norm_rows";
  template <class D, class W, auto Norm>
  static constexpr bool gives = requires(D& on, const NormArgs<activation_t<D, W>>& a) {
    norm_rows(on, norm_form(fixed<Norm>), a);
  };
  template <class D, class W, class S, class L>
  static constexpr bool given() {
    if constexpr (uses_embedding_norm<S>)
      if (!gives<D, W, S::embedding_norm>) return false;
    if constexpr (uses_norms<S, L>) return gives<D, W, L::norm>;
    return true;
  }
  template <bool passed>
  struct explain {
    static_assert(passed,
                  "the device must have norm_rows for this model's norms: its blocks normalize rows. Write "
                  "norm_rows(Device&, norm form, const NormArgs<T>&) beside the device's other operations.");
  };
};

struct GivesLinear {
  static constexpr std::string_view name = "linear";
  template <class D, class W, class S, class L>
  static constexpr bool given() {
    using A = activation_t<D, W>;
    return requires(D & on, const LinearArgs<A, W>& a, const LinearArgs<A, W, float>& head) {
      linear(on, a);
      linear(on, head);
    };
  }
  template <bool passed>
  struct explain {
    static_assert(passed,
                  "the device must have linear for weights of this type: projections and head are matrix products. "
                  "Write linear(Device&, const LinearArgs<T, W>&), or choose another weight type.");
  };
};

struct GivesPrepareHeads {
  static constexpr std::string_view name = "prepare_heads";
  template <class D, class W, class S, class L>
  static constexpr bool given() {
    return requires(D & on, const RotationOf<L>& rotation, const HeadsArgs<activation_t<D, W>>& a) {
      prepare_heads(on, norm_form(fixed<L::qk_norm.norm>), rotation, a);
    };
  }
  template <bool passed>
  struct explain {
    static_assert(passed,
                  "the device must have prepare_heads for this model's q/k norm and rotation: queries and keys are "
                  "made ready and cached. Write prepare_heads(Device&, norm form, rotation, const HeadsArgs<T>&).");
  };
};

struct GivesAttend {
  static constexpr std::string_view name = "attend";
  template <class D, class W, class S, class L>
  static constexpr bool given() {
    if constexpr (L::cross_attention)
      if (!requires(D & on, const CrossScoreOf<L>& score, const AttendArgs<activation_t<D, W>>& a) {
            attend(on, L::cross_mask, score, a);
          })
        return false;
    return requires(D & on, const ScoreOf<L>& score, const AttendArgs<activation_t<D, W>>& a) {
      attend(on, L::mask, score, a);
    };
  }
  template <bool passed>
  struct explain {
    static_assert(passed,
                  "the device must have attend for this model's masks and scores: every layer attends. Write "
                  "attend(Device&, mask, score form, const AttendArgs<T>&) beside the device's other operations.");
  };
};

struct GivesActivate {
  static constexpr std::string_view name = "activate";
  template <class D, class W, class S, class L>
  static constexpr bool given() {
    return requires(D & on, const ActivateArgs<activation_t<D, W>>& a) { activate(on, L::activation, a); };
  }
  template <bool passed>
  struct explain {
    static_assert(passed,
                  "the device must have activate for this model's activation: the feed-forward network is nothing "
                  "without it. Write activate(Device&, activation, const ActivateArgs<T>&).");
  };
};

struct GivesShapeLogits {
  static constexpr std::string_view name = "shape_logits";
  template <class D, class W, class S, class L>
  static constexpr bool given() {
    if constexpr (S::has_head && (S::logit_scale != 1.f || S::final_softcap != 0.f))
      return requires(D & on, const ShapeLogitsArgs& a) { shape_logits(on, a); };
    return true;
  }
  template <bool passed>
  struct explain {
    static_assert(passed,
                  "the device must have shape_logits: this model scales or caps its logits. Write "
                  "shape_logits(Device&, const ShapeLogitsArgs&) beside the device's other operations.");
  };
};

struct GivesSampleRows {
  static constexpr std::string_view name = "sample_rows";
  template <class D, class W, class S, class L>
  static constexpr bool given() {
    if constexpr (S::has_head) return requires(D & on, const SampleArgs& a) {
        sample_rows(on, a);
      };
    return true;
  }
  template <bool passed>
  struct explain {
    static_assert(passed,
                  "the device must have sample_rows: this model generates tokens, which are chosen where the logits "
                  "are. Write sample_rows(Device&, const SampleArgs&) beside the device's other operations.");
  };
};

struct GivesGatherRowsBackward {
  static constexpr std::string_view name = "gather_rows_backward";
  template <class D, class W, class S, class L>
  static constexpr bool given() {
    return requires(D & on, const GatherBackwardArgs<activation_t<D, W>>& a) { gather_rows_backward(on, a); };
  }
  template <bool passed>
  struct explain {
    static_assert(passed,
                  "the device must have gather_rows_backward to train: the embedding table learns. Write "
                  "gather_rows_backward(Device&, const GatherBackwardArgs<T>&), or ask for Use::inference.");
  };
};

struct GivesNormRowsBackward {
  static constexpr std::string_view name = "norm_rows_backward";
  template <class D, class W, auto Norm>
  static constexpr bool gives = requires(D& on, const NormBackwardArgs<activation_t<D, W>>& a) {
    norm_rows_backward(on, norm_form(fixed<Norm>), a);
  };
  template <class D, class W, class S, class L>
  static constexpr bool given() {
    if constexpr (uses_embedding_norm<S>)
      if (!gives<D, W, S::embedding_norm>) return false;
    if constexpr (uses_norms<S, L>) return gives<D, W, L::norm>;
    return true;
  }
  template <bool passed>
  struct explain {
    static_assert(passed,
                  "the device must have norm_rows_backward for this model's norms to train: gradients pass through "
                  "them. Write norm_rows_backward(Device&, norm form, const NormBackwardArgs<T>&), or ask for "
                  "Use::inference.");
  };
};

struct GivesLinearBackward {
  static constexpr std::string_view name = "linear_backward";
  template <class D, class W, class S, class L>
  static constexpr bool given() {
    return requires(D & on, const LinearBackwardArgs<activation_t<D, W>, W>& a) { linear_backward(on, a); };
  }
  template <bool passed>
  struct explain {
    static_assert(passed,
                  "the device must have linear_backward for weights of this type to train: matrices learn. Write "
                  "linear_backward(Device&, const LinearBackwardArgs<T, W>&), or ask for Use::inference.");
  };
};

struct GivesPrepareHeadsBackward {
  static constexpr std::string_view name = "prepare_heads_backward";
  template <class D, class W, class S, class L>
  static constexpr bool given() {
    return requires(D & on, const RotationOf<L>& rotation, const HeadsBackwardArgs<activation_t<D, W>>& a) {
      prepare_heads_backward(on, norm_form(fixed<L::qk_norm.norm>), rotation, a);
    };
  }
  template <bool passed>
  struct explain {
    static_assert(passed,
                  "the device must have prepare_heads_backward for this model's q/k norm and rotation to train: "
                  "gradients are turned back. Write prepare_heads_backward(Device&, norm form, rotation, const "
                  "HeadsBackwardArgs<T>&), or ask for Use::inference.");
  };
};

struct GivesAttendBackward {
  static constexpr std::string_view name = "attend_backward";
  template <class D, class W, class S, class L>
  static constexpr bool given() {
    if constexpr (L::cross_attention)
      if (!requires(D & on, const CrossScoreOf<L>& score, const AttendBackwardArgs<activation_t<D, W>>& a) {
            attend_backward(on, L::cross_mask, score, a);
          })
        return false;
    return requires(D & on, const ScoreOf<L>& score, const AttendBackwardArgs<activation_t<D, W>>& a) {
      attend_backward(on, L::mask, score, a);
    };
  }
  template <bool passed>
  struct explain {
    static_assert(passed,
                  "the device must have attend_backward for this model's masks and scores to train: gradients pass "
                  "through attention. Write attend_backward(Device&, mask, score form, const "
                  "AttendBackwardArgs<T>&), or ask for Use::inference.");
  };
};

struct GivesActivateBackward {
  static constexpr std::string_view name = "activate_backward";
  template <class D, class W, class S, class L>
  static constexpr bool given() {
    return requires(D & on, const ActivateBackwardArgs<activation_t<D, W>>& a) {
      activate_backward(on, L::activation, a);
    };
  }
  template <bool passed>
  struct explain {
    static_assert(passed,
                  "the device must have activate_backward for this model's activation to train: gradients pass "
                  "through it. Write activate_backward(Device&, activation, const ActivateBackwardArgs<T>&), or "
                  "ask for Use::inference.");
  };
};

struct GivesCrossEntropy {
  static constexpr std::string_view name = "cross_entropy";
  template <class D, class W, class S, class L>
  static constexpr bool given() {
    if constexpr (S::has_head) return requires(D & on, const CrossEntropyArgs<activation_t<D, W>>& a) {
        cross_entropy(on, a);
      };
    return true;
  }
  template <bool passed>
  struct explain {
    static_assert(passed,
                  "the device must have cross_entropy to train: it is the loss. Write cross_entropy(Device&, const "
                  "CrossEntropyArgs<T>&), or ask for Use::inference.");
  };
};

struct GivesAdd {
  static constexpr std::string_view name = "add";
  template <class D, class W, class S, class L>
  static constexpr bool given() {
    if constexpr (L::layout.parallel && !shares_norm<L::layout>())
      return requires(D & on, const AddArgs<activation_t<D, W>>& a) { add(on, a); };
    return true;
  }
  template <bool passed>
  struct explain {
    static_assert(passed,
                  "the device must have add to train: the gradients of two parallel branches are summed. Write "
                  "add(Device&, const AddArgs<T>&), or ask for Use::inference.");
  };
};

struct GivesAdamW {
  static constexpr std::string_view name = "adamw";
  template <class D, class W, class S, class L>
  static constexpr bool given() {
    return requires(D & on, const AdamWArgs& a) { adamw(on, a); };
  }
  template <bool passed>
  struct explain {
    static_assert(passed,
                  "the device must have adamw to train: the optimizer's update runs where the weights are. Write "
                  "adamw(Device&, const AdamWArgs&), or ask for Use::inference.");
  };
};

struct GivesSumOfSquares {
  static constexpr std::string_view name = "sum_of_squares";
  template <class D, class W, class S, class L>
  static constexpr bool given() {
    return requires(D & on, const float* x, std::int64_t count) {
      { sum_of_squares(on, x, count) } -> std::same_as<double>;
    };
  }
  template <bool passed>
  struct explain {
    static_assert(passed,
                  "the device must have sum_of_squares to train: the gradient's norm is measured before it is "
                  "clipped. Write double sum_of_squares(Device&, const float*, count), or ask for Use::inference.");
  };
};

/// A device says how wide a head may be, where its kernels have a limit.
struct TakesHeadDim {
  static constexpr std::string_view name = "head_dim";
  template <class D, class W, class S, class L>
  static constexpr bool given() {
    if constexpr (requires { D::largest_head_dim; }) return L::head_dim <= D::largest_head_dim;
    return true;
  }
  template <bool passed>
  struct explain {
    static_assert(passed,
                  "a head must have at most the device's largest_head_dim channels: its kernels keep a head's numbers "
                  "in registers. Choose a smaller head_dim, as in GQA{.head_dim}, or another device.");
  };
};

template <class... Operation>
struct OperationList {};
using InferenceOperations =
    OperationList<TakesHeadDim, GivesMemory, GivesGatherRows, GivesNormRows, GivesLinear, GivesPrepareHeads,
                  GivesAttend, GivesActivate, GivesShapeLogits, GivesSampleRows>;
template <class First, class Second>
struct Joined;
template <class... First, class... Second>
struct Joined<OperationList<First...>, OperationList<Second...>> {
  using Type = OperationList<First..., Second...>;
};
using TrainingOperations =
    Joined<InferenceOperations, OperationList<GivesGatherRowsBackward, GivesNormRowsBackward, GivesLinearBackward,
                                              GivesPrepareHeadsBackward, GivesAttendBackward, GivesActivateBackward,
                                              GivesCrossEntropy, GivesAdd, GivesAdamW, GivesSumOfSquares>>::Type;

template <class Operation, class Device, class W, class S, int... kind>
constexpr bool given_in_layers(std::integer_sequence<int, kind...>) {
  return (Operation::template given<Device, W, S, typename S::template Layer<kind>>() && ...);
}
/// True when every stack and kind of layer of M finds the operation.
template <class Operation, class Device, class W, class M>
constexpr bool given_everywhere() {
  if constexpr (EncoderDecoderComposition<M>)
    return given_everywhere<Operation, Device, W, typename M::Encoder>() &&
           given_everywhere<Operation, Device, W, typename M::Decoder>();
  else
    return given_in_layers<Operation, Device, W, M>(std::make_integer_sequence<int, M::layer_kinds>{});
}

template <class Device, class M, class W, class List>
struct Support;
template <class Device, class M, class W, class... Operation>
struct Support<Device, M, W, OperationList<Operation...>> {
  struct Explain : Operation::template explain<given_everywhere<Operation, Device, W, M>()>... {};
  static constexpr bool ok = (given_everywhere<Operation, Device, W, M>() && ...);
  static std::string missing() {
    std::string names;
    const auto name = [&](bool given, std::string_view operation) {
      if (!given) names.append(names.empty() ? "" : ", ").append(operation);
    };
    (name(given_everywhere<Operation, Device, W, M>(), Operation::name), ...);
    return names;
  }
};
template <class Device, class M, Use use, class W>
using SupportFor =
    Support<Device, M, W, std::conditional_t<use == Use::training, TrainingOperations, InferenceOperations>>;

}  // namespace detail

/// Satisfied when the device has every operation that M needs, on weights of type W: for constraints and branches;
/// never a hard error. The device's operations must be declared before the first time it is asked.
template <class Device, class M, Use use = Use::training, class W = float>
concept Supports = detail::SupportFor<Device, M, use, W>::ok;

/// The same for static_assert(supports<Device, M>): where operations are missing, each is an error of one sentence that
/// says what to write.
template <class Device, class M, Use use = Use::training, class W = float>
inline constexpr bool supports =
    sizeof(typename detail::SupportFor<Device, M, use, W>::Explain) > 0 && Supports<Device, M, use, W>;

/// What the device lacks for M: "attend, linear"; empty when it supports M.
template <class Device, class M, Use use = Use::training, class W = float>
std::string missing_operations() {
  return detail::SupportFor<Device, M, use, W>::missing();
}

}  // namespace typeformer
