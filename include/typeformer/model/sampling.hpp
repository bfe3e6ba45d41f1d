/// From logits to the next token.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "typeformer/core/error.hpp"
#include "typeformer/core/random.hpp"

namespace typeformer::inline TYPEFORMER_ABI {

/// How the next token is chosen: from softmax(logits / temperature), of the top_k likeliest tokens (0: all), of the
/// fewest tokens whose probabilities reach top_p (Holtzman et al. 2019, arXiv:1904.09751, section 3.1), in this order.
/// Temperature 0 takes the likeliest token (the lowest id of equals).
struct SamplingOptions {
  float temperature = 0.f;
  int top_k = 0;
  float top_p = 1.f;
  std::uint64_t seed = 0;
};

namespace detail {

inline void check_sampling(const SamplingOptions& o, std::size_t vocab) {
  if (!(o.temperature >= 0.f) || std::isinf(o.temperature))
    throw Error("sample", "temperature", "a finite number of 0 or more", std::to_string(o.temperature));
  if (o.top_k < 0) throw Error("sample", "top_k", "0 (all) or more", std::to_string(o.top_k));
  if (!(o.top_p > 0.f && o.top_p <= 1.f))
    throw Error("sample", "top_p", "above 0 and at most 1", std::to_string(o.top_p));
  if (vocab == 0) throw Error("sample", "logits", "at least one", "none");
}

}  // namespace detail

/// The token to come after `logits`. Draw number `step` of the seed: equal arguments give equal tokens.
/// Throws Error for options out of range, for a logit that is NaN or +infinity, and when all are -infinity.
inline std::int32_t sample(std::span<const float> logits, const SamplingOptions& options, std::uint64_t step = 0) {
  detail::check_sampling(options, logits.size());
  float best = -INFINITY;
  for (const float logit : logits) {
    if (std::isnan(logit)) throw Error("sample", "logits", "numbers", "NaN");
    best = std::max(best, logit);
  }
  if (best == -INFINITY) throw Error("sample", "logits", "a number above -infinity", "none");
  if (best == INFINITY) throw Error("sample", "logits", "finite numbers or -infinity", "+infinity");
  if (options.temperature == 0.f)
    return static_cast<std::int32_t>(std::find(logits.begin(), logits.end(), best) - logits.begin());

  std::vector<std::int32_t> order;
  for (std::size_t id = 0; id < logits.size(); ++id)
    if (logits[id] > -INFINITY) order.push_back(static_cast<std::int32_t>(id));
  const auto likelier = [&](std::int32_t a, std::int32_t b) {
    const float x = logits[static_cast<std::size_t>(a)], y = logits[static_cast<std::size_t>(b)];
    return x != y ? x > y : a < b;
  };
  const auto kept = options.top_k > 0 ? std::min(order.size(), static_cast<std::size_t>(options.top_k)) : order.size();
  if (options.top_p < 1.f || kept < order.size())
    std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(kept), order.end(), likelier);
  order.resize(kept);
  std::vector<double> weights;
  for (const std::int32_t id : order)
    weights.push_back(
        std::exp((double{logits[static_cast<std::size_t>(id)]} - double{best}) / double{options.temperature}));
  double total = std::accumulate(weights.begin(), weights.end(), 0.);
  if (options.top_p < 1.f) {
    double sum = 0;
    std::size_t count = 0;
    while (count < weights.size() && sum < options.top_p * total) sum += weights[count++];
    weights.resize(count);
    total = sum;
  }
  double rest = detail::uniform(options.seed, step) * total;
  for (std::size_t i = 0; i < weights.size(); ++i)
    if ((rest -= weights[i]) < 0) return order[i];
  return order[weights.size() - 1];
}

}  // namespace typeformer
