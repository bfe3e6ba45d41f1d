/// The judge of sampling: everything sorted, in double.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

namespace reference {

struct Sampling {
  double temperature = 1;
  std::size_t top_k = 0;
  double top_p = 1;
};

/// The tokens of one row by likelihood, and how many of them are kept.
class SamplingJudge {
 public:
  /// `doubt`: what probabilities may be off for others; any number of tokens from least() to most() is right then.
  SamplingJudge(const std::vector<float>& logits, const Sampling& rule, double doubt) : doubt_(doubt) {
    for (std::size_t id = 0; id < logits.size(); ++id)
      if (!std::isinf(logits[id])) order_.push_back(id);
    std::stable_sort(order_.begin(), order_.end(), [&](auto a, auto b) { return logits[a] > logits[b]; });
    if (rule.top_k > 0 && rule.top_k < order_.size()) order_.resize(rule.top_k);
    weights_.resize(logits.size(), 0.);
    for (const std::size_t id : order_)
      weights_[id] = std::exp((double{logits[id]} - double{logits[order_[0]]}) / rule.temperature);
    least_ = most_ = order_.size();
    if (rule.top_p >= 1) return;
    const double total = std::accumulate(weights_.begin(), weights_.end(), 0.);
    double sum = 0;
    most_ = 0;
    for (std::size_t count = 1; count <= order_.size(); ++count) {
      if (sum < (rule.top_p + doubt) * total) most_ = count;
      sum += weights_[order_[count - 1]];
      if (least_ == order_.size() && sum >= (rule.top_p - doubt) * total) least_ = count;
    }
  }
  std::size_t least() const { return least_; }
  std::size_t most() const { return most_; }

  /// Whether the number `place` in [0, 1) draws the token, by one of the right numbers of kept tokens.
  bool allows(std::int32_t id, double place) const {
    if (id < 0 || static_cast<std::size_t>(id) >= weights_.size()) return false;
    for (std::size_t count = least_; count <= most_; ++count) {
      std::vector<double> kept(weights_.size(), 0.);
      for (std::size_t i = 0; i < count; ++i) kept[order_[i]] = weights_[order_[i]];
      const auto at = kept.begin() + id;
      const double total = std::accumulate(kept.begin(), kept.end(), 0.),
                   before = std::accumulate(kept.begin(), at, 0.);
      if (*at > 0 && place >= before / total - doubt_ && place < (before + *at) / total + doubt_) return true;
    }
    return false;
  }

 private:
  double doubt_;
  std::vector<std::size_t> order_;
  std::vector<double> weights_;  // by id; 0 beyond top_k
  std::size_t least_, most_;
};

}  // namespace reference
