/// All that `describe` says about a composition, as run-time data.
#pragma once
#include <algorithm>
#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "typeformer/report/alias.hpp"
#include "typeformer/report/architecture.hpp"
#include "typeformer/report/costs.hpp"
#include "typeformer/report/plan.hpp"

namespace typeformer::inline TYPEFORMER_ABI {

/// Parameters of one name and shape: one of the stack, or one in each of some layers.
struct ParameterGroup {
  std::string name;  ///< "decoder.attn.q_proj.weight", without the layer
  std::vector<int> layers;
  std::int64_t rows = 0, columns = 1;  ///< columns 1: a vector
  bool matrix = false, decays = false;

  std::int64_t size() const { return rows * columns; }
  std::int64_t count() const { return size() * std::max<std::int64_t>(1, static_cast<std::int64_t>(layers.size())); }
};

/// A hyperparameter beside what published models have.
struct Ratio {
  std::string name;
  double value = 0, low = 0, high = 0;
  std::string usual;  ///< what is common, and who differs

  bool common() const { return low <= value && value <= high; }
};

/// The costs of a stack under its name: "", "encoder" or "decoder".
struct NamedCosts {
  std::string stack;
  StackCosts costs;
};

/// What describe prints, as data: parameters by group, FLOPs and bytes per token, the operations of each kind of layer,
/// and how the sizes stand to the field's.
struct Description {
  std::string name, alias;
  std::int64_t parameters = 0;
  std::vector<ParameterGroup> groups;
  CostOptions options;
  std::vector<NamedCosts> costs;
  std::vector<PlannedStep> plan;
  std::vector<std::string> remarks;  ///< policies that run slower than they could, and what the alias cannot say
  std::vector<Ratio> ratios;
};

namespace detail {

/// A number type that no float converts to or from by itself: what stands for a vector of lanes in formulas.
struct LaneProbe {
  explicit LaneProbe(double) {}
};

template <class Norm>
constexpr bool norm_has_lanes = requires(const Norm n, LaneProbe x) {
  { n.scale(x) } -> std::same_as<LaneProbe>;
  { n.normalize(x, x) } -> std::same_as<LaneProbe>;
  { n.normalize_backward(x, x, x, x, x) } -> std::same_as<LaneProbe>;
};
template <class F>
constexpr bool activation_has_lanes = requires(const F f, LaneProbe x) {
  requires !F::gated;
  { f(x) } -> std::same_as<LaneProbe>;
  { f.derivative(x) } -> std::same_as<LaneProbe>;
}
|| requires(const F f, LaneProbe x) {
  requires F::gated;
  { f(x, x) } -> std::same_as<LaneProbe>;
  { f.derivative_gate(x, x) } -> std::same_as<LaneProbe>;
  { f.derivative_up(x, x) } -> std::same_as<LaneProbe>;
};

/// Collects remarks, each once.
class Remarks {
 public:
  explicit Remarks(std::vector<std::string>& to) : to_(to) {}
  void operator()(bool wanted, std::string text) {
    if (wanted && std::find(to_.begin(), to_.end(), text) == to_.end()) to_.push_back(std::move(text));
  }
  template <auto Norm>
  void norm() {
    value_by_value(!norm_has_lanes<policy_t<Norm>>, policy_name<policy_t<Norm>>());
  }
  template <auto Mask>
  void mask() {
    (*this)(!MaskWithSpan<policy_t<Mask>>,
            policy_name<policy_t<Mask>>() + " has no span: it is right, but no key is skipped.");
  }
  void value_by_value(bool wanted, const std::string& policy) {
    (*this)(wanted, policy + " takes float only: its formula runs value by value, not in vector lanes.");
  }

 private:
  std::vector<std::string>& to_;
};

/// What an alias cannot say of a layer pattern: kinds that differ in more than mask and position, or a user's pattern.
template <class S>
bool alias_says_pattern(const StackInfo& info) {
  return S::layer_kinds == 1 || info.local;
}

template <class S>
void add_remarks(std::vector<std::string>& to, const StackInfo& info) {
  Remarks remark(to);
  for_each_kind<S>([&]<class L, int>() {
    remark.norm<L::norm>();
    remark.norm<L::qk_norm.norm>();
    remark.value_by_value(!activation_has_lanes<policy_t<L::activation>>, policy_name<policy_t<L::activation>>());
    remark.mask<L::mask>();
    if constexpr (L::cross_attention) remark.mask<L::cross_mask>();
  });
  remark.norm<S::embedding_norm>();
  remark(!alias_says_pattern<S>(info),
         "the alias above leaves out what " + policy_name<policy_t<S::pattern>>() + " changes from layer to layer.");
}

/// Ranges of published models. Kaplan et al. 2020, arXiv:2001.08361, figure 5, finds the loss flat over them.
template <class S>
void add_ratios(std::vector<Ratio>& to, const std::string& stack) {
  constexpr double d = S::dims.d_model;
  constexpr bool gated = policy_t<S::activation>::gated;
  to.push_back(
      {stack + "d_ff / d_model", S::dims.d_ff / d, gated ? 2.5 : 4., 4.,
       gated ? "8/3 with a gate in LLaMA, 3.5 in Mistral, 4 in PaLM; 8 in Gemma 1" : "4 without a gate; 64 in T5-11B"});
  to.push_back({stack + "heads * head_dim / d_model", S::q_width / d, .67, 2.,
                "1 in most, 0.67 in PaLM-540B, 2 in LaMDA; 16 in T5-11B"});
  to.push_back({stack + "d_model / n_layers", d / S::dims.n_layers, 100., 205.,
                "128 in GPT-3, 102 in LLaMA-65B, 205 in BLOOM; small models are slimmer"});
  to.push_back({stack + "vocabulary", static_cast<double>(S::dims.vocab), 30000., 262144.,
                "30,000 to 50,000 for one language, 100,000 and more for many"});
}

template <class M>
std::vector<ParameterGroup> parameter_groups() {
  std::vector<ParameterGroup> groups;
  for (const Parameter& p : parameters<M>) {
    const std::string name = std::string(p.stack) + std::string(p.suffix);
    const auto same = std::find_if(groups.begin(), groups.end(), [&](const ParameterGroup& g) {
      return p.layer >= 0 && g.name == name && g.rows == p.rows && g.columns == p.columns;
    });
    if (same != groups.end()) {
      same->layers.push_back(p.layer);
      continue;
    }
    groups.push_back({name, {}, p.rows, p.columns, p.matrix, p.decays});
    if (p.layer >= 0) groups.back().layers.push_back(p.layer);
  }
  return groups;
}

}  // namespace detail

/// Everything that `describe` tells about M.
template <class M>
Description description_of(const CostOptions& options = {}) {
  const Architecture architecture = architecture_of<M>();
  Description d;
  d.name = architecture.name;
  d.alias = alias_source(architecture, alias_name(architecture.name));
  d.parameters = M::parameter_count;
  d.groups = detail::parameter_groups<M>();
  d.options = options;
  d.plan = fusion_plan<M>();
  if constexpr (EncoderDecoderComposition<M>) {
    d.costs = {{"encoder", encoder_costs<M>(options)}, {"decoder", decoder_costs<M>(options)}};
    detail::add_remarks<typename M::Encoder>(d.remarks, *architecture.encoder);
    detail::add_remarks<typename M::Decoder>(d.remarks, architecture.stack);
    detail::add_ratios<typename M::Encoder>(d.ratios, "encoder: ");
    detail::add_ratios<typename M::Decoder>(d.ratios, "decoder: ");
  } else {
    d.costs = {{"", costs<M>(options)}};
    detail::add_remarks<M>(d.remarks, architecture.stack);
    detail::add_ratios<M>(d.ratios, "");
  }
  return d;
}

}  // namespace typeformer
