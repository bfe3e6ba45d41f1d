/// What one pass of a composition calls: the operations of every layer in order, and what each of them does in one go.
///
/// Nothing is written down here per model: the passes of model/ run on a device that computes nothing and notes what it
/// is asked for.
#pragma once
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "typeformer/model/head.hpp"
#include "typeformer/report/architecture.hpp"

namespace typeformer::inline TYPEFORMER_ABI {

/// One call of an operation of the contract.
struct PlannedOperation {
  std::string operation;             ///< "linear"
  std::vector<std::string> reads{};  ///< the parameters, "attn.q_proj.weight"
  std::vector<std::string> does{};   ///< all that the one call does
  int in = 0, out = 0;               ///< of a matrix product: its columns and rows

  bool operator==(const PlannedOperation&) const = default;
};
/// Operations that follow each other: before the layers, in equal layers, after them.
struct PlannedStep {
  std::string stack;        ///< "", "encoder." or "decoder."
  std::string what;         ///< "embedding", "layer", "final norm", "head"
  std::vector<int> layers;  ///< the layers that are alike; empty outside of them
  std::vector<PlannedOperation> operations;
};

namespace detail::tracing {

/// Notes the operations it is asked for. Parameters are known by their addresses.
class Device {
 public:
  std::vector<PlannedOperation> operations;
  std::span<const Parameter> table{};
  const float* matrices = nullptr;  // one element per parameter, at its index
  const float* vectors = nullptr;
  const float* source = nullptr;  // what products of the encoder's output read

  void* allocate(std::size_t bytes) { return std::malloc(bytes); }
  void release(void* memory) noexcept { std::free(memory); }
  void upload(void*, const void*, std::size_t) {}
  void download(void*, const void*, std::size_t) {}
  void zero(void*, std::size_t) {}

  PlannedOperation& note(std::string operation) {
    operations.push_back({std::move(operation)});
    return operations.back();
  }
  /// Adds the parameters from `at` on whose rows add up to `rows` (neighbours that are read as one), as read by the
  /// last operation; how many they are.
  int reads(const float* at, std::int64_t rows, bool matrix) {
    const float* base = matrix ? matrices : vectors;
    if (!at || at < base || at >= base + table.size()) return 0;
    int count = 0;
    for (auto index = static_cast<std::size_t>(at - base); rows > 0 && index < table.size(); ++index) {
      if (table[index].matrix != matrix) continue;
      operations.back().reads.emplace_back(table[index].suffix);
      rows -= table[index].rows;
      ++count;
    }
    return count;
  }
  void does(bool wanted, std::string what) {
    if (wanted) operations.back().does.push_back(std::move(what));
  }
};

template <class Norm>
std::string norm_text() {
  std::string text = policy_name<std::remove_cvref_t<decltype(Norm::policy)>>();
  if constexpr (Norm::gain == Gain::one_plus) text += ", gain 1 + w";
  if constexpr (Norm::gain == Gain::weight) text += ", gain w";
  if constexpr (Norm::has_bias) text += ", bias";
  return text;
}

/// A number as it is read: "0.125".
inline std::string number_text(float value) {
  std::string text = float_text(value);
  text.pop_back();  // the f
  if (text.back() == '.') text.pop_back();
  return text;
}

template <class T, class W>
void gather_rows(Device& on, const GatherArgs<T, W>& a) {
  on.note("gather_rows");
  if (on.reads(a.table, 1, true) == 0) on.does(true, "positions by formula");
  on.does(a.scale != 1.f, "factor " + number_text(a.scale));
  on.does(a.accumulate, "+ what is there");
}
template <class Norm>
void norm_rows(Device& on, const Norm&, const NormArgs<float>& a) {
  on.note("norm_rows");
  on.reads(a.gain, 1, false);
  on.reads(a.bias, 1, false);
  on.does(true, norm_text<Norm>());
  on.does(a.residual, "+ residual");
}
inline void linear(Device& on, const LinearArgs<float, float>& a) {
  PlannedOperation& operation = on.note("linear");
  operation.in = a.in;
  operation.out = a.out;
  const int matrices = on.reads(a.w, a.out, true);
  on.does(matrices > 1, std::to_string(matrices) + " matrices as one");
  if (a.bias) on.reads(a.bias, a.out, false), on.does(true, "+ bias");
  on.does(a.residual, "+ residual");
  on.does(on.source && a.x == on.source, "of the encoder's output, once per source");
}
template <class Norm, Pairs pairs>
void prepare_heads(Device& on, const Norm&, const Rotation<pairs>& rotation, const HeadsArgs<float>& a) {
  on.note("prepare_heads");
  on.reads(a.q_gain, 1, false);
  on.reads(a.q_bias, 1, false);
  on.reads(a.k_gain, 1, false);
  on.reads(a.k_bias, 1, false);
  constexpr bool normalizes = !std::is_same_v<std::remove_cvref_t<decltype(Norm::policy)>, NoNorm>;
  on.does(true, "splits q, k, v");
  on.does(normalizes && !a.norm_after_rope, norm_text<Norm>() + " of q and k");
  on.does(rotation.width > 0, "RoPE of " + std::to_string(rotation.width) + " of " + std::to_string(a.head_dim) +
                                  " channels, pairs " + text_of(pairs));
  on.does(normalizes && a.norm_after_rope, norm_text<Norm>() + " of q and k");
  on.does(a.kv_row, "writes k and v to the cache");
}
template <class Mask, class Score>
void attend(Device& on, const Mask& mask, const Score& score, const AttendArgs<float>&) {
  on.note("attend");
  on.does(true, "scores times " + number_text(score.scale));
  on.does(Score::has_softcap, "soft-cap " + number_text(score.cap));
  if constexpr (Score::Bias::trained) on.reads(score.bias.table, 1, false);
  on.does(Score::Bias::any, Score::Bias::trained ? "+ trained bias" : "+ bias by formula");
  const int back = reach(mask);
  on.does(true, policy_name<Mask>() + " mask" + (back ? " of " + std::to_string(back) + " keys" : ""));
  on.does(true, "softmax, sum of values");
}
template <class Activation>
void activate(Device& on, const Activation&, const ActivateArgs<float>&) {
  on.note("activate");
  on.does(true, policy_name<Activation>() + (Activation::gated ? " of gate and up" : ""));
}
inline void shape_logits(Device& on, const ShapeLogitsArgs& a) {
  on.note("shape_logits");
  on.does(a.factor != 1.f, "factor " + number_text(a.factor));
  on.does(a.cap > 0.f, "soft-cap " + number_text(a.cap));
}
inline void sample_rows(Device& on, const SampleArgs&) { on.note("sample_rows"); }

/// One stack's pass, cut into steps by what an observer sees.
template <class S>
class Trace {
 public:
  /// `table`: the parameters of the whole model; those of this stack are called `name` there.
  Trace(std::span<const Parameter> table, std::string_view name)
      : table_(table), name_(name), numbered_(table.begin(), table.end()), numbers_(2 * table.size() + 1) {
    for (std::size_t i = 0; i < numbered_.size(); ++i) numbered_[i].offset = static_cast<std::int64_t>(i);
    on_.table = table;
    on_.matrices = numbers_.data();
    on_.vectors = numbers_.data() + table.size();
    on_.source = numbers_.data() + 2 * table.size();
  }
  std::vector<PlannedStep> steps() {
    pass();
    if constexpr (S::has_head) head();
    return std::move(steps_);
  }

 private:
  const float* matrix(Tensor tensor) const {
    for (std::size_t i = 0; i < table_.size(); ++i)
      if (table_[i].tensor == tensor && table_[i].layer < 0) return on_.matrices + i;
    return nullptr;
  }
  const float* vector(Tensor tensor) const {
    const float* at = matrix(tensor);
    return at ? on_.vectors + (at - on_.matrices) : nullptr;
  }
  void pass() {
    const TensorIndex index(numbered_, name_);
    const StackView<const float> weights(on_.matrices, numbers_.data() + table_.size(), index);
    const std::vector<PositionTables<Device>> tables(static_cast<std::size_t>(S::layer_kinds));
    Slab size;
    plan_stack<S, float>(size, 1, 1, false, true);
    std::vector<std::byte> memory(static_cast<std::size_t>(size.used()));
    Slab slab(memory.data());
    StackActivations<float> a = plan_stack<S, float>(slab, 1, 1, false, true);
    const std::int64_t row = 0;
    PassTokens<float> tokens;
    tokens.kv_rows = S::has_head ? &row : nullptr;
    tokens.source = on_.source;
    PassArrays<Device, float> arrays;
    const auto observer = [this](const Observed<float>& seen) { cut(seen); };
    Stack<S, Device, float>(on_, name_, weights, matrix(Tensor::token_embeddings), tables, nullptr)
        .forward(
            arrays, a, static_cast<KVCache<S, Device, float>*>(nullptr), [&](int) { return tokens; },
            [](int, BlockActivations<float>&) {}, observer);
  }
  void head() {
    float hidden = 0, logits = 0;
    Head<S, Device, float>(on_, matrix(S::tied ? Tensor::token_embeddings : Tensor::head_weight),
                           vector(Tensor::head_bias))
        .logits(&logits, &hidden, 1);
    add("head", -1);
  }
  void cut(const Observed<float>& seen) {
    if (seen.name == "embedding") add("embedding", -1);
    if (seen.name == "hidden") add("layer", seen.layer);
    if (seen.name == "final_norm") add("final norm", -1);
  }
  /// What was noted since the last cut; layers join the step of those that do the same.
  void add(std::string what, int layer) {
    std::vector<PlannedOperation> noted;
    noted.swap(on_.operations);
    if (noted.empty()) return;
    for (PlannedStep& step : steps_)
      if (layer >= 0 && !step.layers.empty() && step.operations == noted) return step.layers.push_back(layer);
    steps_.push_back({std::string(name_), std::move(what), {}, std::move(noted)});
    if (layer >= 0) steps_.back().layers.push_back(layer);
  }

  std::span<const Parameter> table_;
  std::string_view name_;
  std::vector<Parameter> numbered_;
  std::vector<float> numbers_;
  Device on_;
  std::vector<PlannedStep> steps_;
};

}  // namespace detail::tracing

/// The operations of a forward pass of M with a cache, in order; equal layers once. An encoder's come first.
template <class M>
std::vector<PlannedStep> fusion_plan() {
  if constexpr (EncoderDecoderComposition<M>) {
    auto steps = detail::tracing::Trace<typename M::Encoder>(parameters<M>, "encoder.").steps();
    for (auto& step : detail::tracing::Trace<typename M::Decoder>(parameters<M>, "decoder.").steps())
      steps.push_back(std::move(step));
    return steps;
  } else {
    return detail::tracing::Trace<M>(parameters<M>, "").steps();
  }
}

}  // namespace typeformer
