/// The shape of logits (scale, soft cap) and their cross-entropy with z-loss and label smoothing, on the CPU.
#pragma once
#include <algorithm>
#include <cmath>

#include "typeformer/kernel/contract.hpp"
#include "typeformer/kernel/cpu/device.hpp"
#include "typeformer/kernel/cpu/lanes.hpp"

namespace typeformer::inline TYPEFORMER_ABI::cpu {

namespace detail {

/// softcap(factor * logit).
inline float shaped(float logit, float factor, float cap) {
  const float scaled = logit * factor;
  return cap > 0.f ? cap * std::tanh(scaled / cap) : scaled;
}

/// The loss of one row of shaped logits z; with `gradient` z is replaced by the gradient of the raw logits.
inline float row_loss(const CrossEntropyArgs<float>& a, float* z, int label) {
  float highest = z[0];
  for (int c = 1; c < a.vocab; ++c) highest = std::max(highest, z[c]);
  const float log_z = highest + std::log(sum_of(a.vocab, [&](std::int64_t c) { return std::exp(z[c] - highest); }));
  const float share = a.smoothing / static_cast<float>(a.vocab);
  float target = (1.f - a.smoothing) * z[label];
  if (share > 0.f) target += share * sum_of(a.vocab, [&](std::int64_t c) { return z[c]; });
  if (a.gradient)
    for (int c = 0; c < a.vocab; ++c) {
      const float wanted = share + (c == label ? 1.f - a.smoothing : 0.f);
      float d = (1.f + 2.f * a.z_loss * log_z) * std::exp(z[c] - log_z) - wanted;
      if (a.cap > 0.f) d *= 1.f - (z[c] / a.cap) * (z[c] / a.cap);
      z[c] = d * a.factor * a.gradient_scale;
    }
  return log_z - target + a.z_loss * log_z * log_z;
}

}  // namespace detail

/// y = softcap(factor * y) in place; see ShapeLogitsArgs.
inline void shape_logits(Device& on, const ShapeLogitsArgs& a) {
  on.parallel(a.count, 4096, [&](std::int64_t first, std::int64_t last) {
    for (auto i = first; i < last; ++i) a.y[i] = detail::shaped(a.y[i], a.factor, a.cap);
  });
}

/// loss per row, and with `gradient` the gradient of the raw logits in their place; see CrossEntropyArgs.
inline void cross_entropy(Device& on, const CrossEntropyArgs<float>& a) {
  on.parallel(a.rows, 1, [&](std::int64_t first, std::int64_t last) {
    for (auto row = first; row < last; ++row) {
      float* logits = a.logits + row * a.vocab;
      if (a.labels[row] < 0) {
        a.loss[row] = 0.f;
        if (a.gradient) std::fill_n(logits, a.vocab, 0.f);
        continue;
      }
      for (int c = 0; c < a.vocab; ++c) logits[c] = detail::shaped(logits[c], a.factor, a.cap);
      a.loss[row] = detail::row_loss(a, logits, a.labels[row]);
    }
  });
}

}  // namespace typeformer::inline TYPEFORMER_ABI::cpu
