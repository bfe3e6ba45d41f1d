/// AdamW over the parameter table: one moment pair per parameter, weight decay where the table says so.
#pragma once
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "typeformer/kernel/contract.hpp"
#include "typeformer/model/model.hpp"

namespace typeformer::inline TYPEFORMER_ABI {

/// Loshchilov & Hutter 2017, arXiv:1711.05101, algorithm 2, with PyTorch's decay (learning_rate * weight_decay).
struct AdamWOptions {
  float learning_rate = 1e-3f;  ///< of steps that name none
  float beta1 = .9f, beta2 = .95f;
  float eps = 1e-8f;
  float weight_decay = .1f;  ///< of matrices and embeddings; norms, biases and score tables do not decay
};

/// What may differ from step to step.
struct StepOptions {
  std::optional<float> learning_rate{};  ///< not set: that of the AdamWOptions
  float gradient_scale = 1.f;            ///< the update is by this times the gradients; see clip_scale
};

namespace detail {

/// Neighbours in an arena that are updated alike.
struct UpdateRange {
  std::int64_t first = 0, count = 0;
  bool matrix = false, decays = false;
};

/// The parameter table as ranges. What pads the arena between parameters is zero, has no gradient and stays zero.
template <class M>
std::vector<UpdateRange> update_ranges() {
  std::vector<UpdateRange> ranges;
  for (const bool matrix : {true, false})
    for (const Parameter& p : parameters<M>) {
      if (p.matrix != matrix) continue;
      if (ranges.empty() || ranges.back().matrix != matrix || ranges.back().decays != p.decays)
        ranges.push_back({p.offset, 0, matrix, p.decays});
      ranges.back().count = p.offset + p.size() - ranges.back().first;
    }
  return ranges;
}

inline void check_adamw(const AdamWOptions& o) {
  const auto require = [](bool holds, const char* field, const char* expected, float got) {
    if (!holds) throw Error("AdamW", field, expected, std::to_string(got));
  };
  require(o.learning_rate >= 0.f && std::isfinite(o.learning_rate), "learning_rate", "a finite number of 0 or more",
          o.learning_rate);
  require(o.beta1 >= 0.f && o.beta1 < 1.f, "beta1", "0 or more and below 1", o.beta1);
  require(o.beta2 >= 0.f && o.beta2 < 1.f, "beta2", "0 or more and below 1", o.beta2);
  require(o.eps > 0.f && std::isfinite(o.eps), "eps", "a finite number above 0", o.eps);
  require(o.weight_decay >= 0.f && std::isfinite(o.weight_decay), "weight_decay", "a finite number of 0 or more",
          o.weight_decay);
}

}  // namespace detail

/// The optimizer of a model of composition M: its moments, in float, in the device's memory.
template <class M, class Device>
class AdamW {
 public:
  /// Throws Error for options out of range.
  explicit AdamW(Device& on, const AdamWOptions& options = {}) : on_(&on), options_(options), m_(on), v_(on) {
    detail::check_adamw(options);
  }
  template <class W>
  explicit AdamW(const Model<M, Device, W>& model, const AdamWOptions& options = {}) : AdamW(model.device(), options) {}

  /// One update of every weight. The gradients are left as they are: zero them before the next loss_and_gradients, or
  /// let them add up over several batches. (Each batch's gradient is of its mean over counted labels. The sum over
  /// batches scaled by 1 / n is therefore that of one large batch only when all of them count as many labels.) Throws
  /// Error, before anything changes, for a rate that is negative, a rate or scale that is not finite, and a model or
  /// gradients on another device.
  template <class W>
  void step(Model<M, Device, W>& model, const ParameterArena<M, Device, float>& gradients,
            const StepOptions& how = {}) {
    static_assert(
        std::is_same_v<W, float>,
        "an optimizer updates master weights in float: an update is often smaller than half a unit in the "
        "last place of bf16 or f16 and would be lost. Train a Model<M, Device, float> and round a copy of it.");
    const float learning_rate = how.learning_rate.value_or(options_.learning_rate);
    check("learning_rate", "a finite number of 0 or more", learning_rate, learning_rate >= 0.f);
    check("gradient_scale", "a finite number", how.gradient_scale, true);
    for (const Device* on : {&model.device(), &gradients.device()})
      if (on != on_) throw Error("AdamW::step", "model, gradients", "the device of the optimizer", "another one");
    if (steps_ == std::numeric_limits<int>::max())
      throw Error("AdamW::step", "steps", "fewer than 2147483647", std::to_string(steps_));
    ++steps_;
    for (const detail::UpdateRange& range : ranges_)
      update(model.weights(), gradients, range, learning_rate, how.gradient_scale);
  }

  const AdamWOptions& options() const { return options_; }
  /// Updates so far, and the running means of the gradient and of its square: what a checkpoint of the training keeps
  /// besides the weights.
  int steps() const { return steps_; }
  void set_steps(int steps) {
    if (steps < 0) throw Error("AdamW::set_steps", "steps", "0 or more", std::to_string(steps));
    steps_ = steps;
  }
  ParameterArena<M, Device, float>& first_moments() { return m_; }
  ParameterArena<M, Device, float>& second_moments() { return v_; }

 private:
  static void check(const char* argument, const char* expected, float value, bool holds) {
    if (!holds || !std::isfinite(value)) throw Error("AdamW::step", argument, expected, std::to_string(value));
  }
  void update(ParameterArena<M, Device, float>& weights, const ParameterArena<M, Device, float>& gradients,
              const detail::UpdateRange& range, float learning_rate, float gradient_scale) {
    const auto at = [&range](auto& arena) {
      return (range.matrix ? arena.matrices() : arena.vectors()).data() + range.first;
    };
    adamw(*on_, AdamWArgs{.weight = at(weights),
                          .gradient = at(gradients),
                          .m = at(m_),
                          .v = at(v_),
                          .count = range.count,
                          .learning_rate = learning_rate,
                          .beta1 = options_.beta1,
                          .beta2 = options_.beta2,
                          .eps = options_.eps,
                          .decay = range.decays ? options_.weight_decay : 0.f,
                          .gradient_scale = gradient_scale,
                          .step = steps_});
  }

  Device* on_;
  AdamWOptions options_;
  ParameterArena<M, Device, float> m_, v_;
  std::vector<detail::UpdateRange> ranges_ = detail::update_ranges<M>();
  int steps_ = 0;
};

template <class M, class Device, class W>
AdamW(const Model<M, Device, W>&, const AdamWOptions&) -> AdamW<M, Device>;
template <class M, class Device, class W>
AdamW(const Model<M, Device, W>&) -> AdamW<M, Device>;

}  // namespace typeformer
