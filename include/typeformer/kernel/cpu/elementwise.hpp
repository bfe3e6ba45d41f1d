/// Sums and the optimizer's update on the CPU.
#pragma once
#include <cmath>

#include "typeformer/kernel/contract.hpp"
#include "typeformer/kernel/cpu/device.hpp"

namespace typeformer::inline TYPEFORMER_ABI::cpu {

/// y = a + b; see AddArgs.
inline void add(Device& on, const AddArgs<float>& a) {
  on.parallel(a.count, 4096, [&](std::int64_t first, std::int64_t last) {
    for (auto i = first; i < last; ++i) a.y[i] = a.a[i] + a.b[i];
  });
}

/// One step of AdamW on `count` weights; see AdamWArgs.
inline void adamw(Device& on, const AdamWArgs& a) {
  const auto correction1 = static_cast<float>(1. - std::pow(double{a.beta1}, a.step));
  const auto correction2 = static_cast<float>(1. - std::pow(double{a.beta2}, a.step));
  on.parallel(a.count, 4096, [&](std::int64_t first, std::int64_t last) {
    for (auto i = first; i < last; ++i) {
      const float g = a.gradient[i] * a.gradient_scale;
      a.m[i] = a.beta1 * a.m[i] + (1.f - a.beta1) * g;
      a.v[i] = a.beta2 * a.v[i] + (1.f - a.beta2) * g * g;
      const float update = a.m[i] / correction1 / (std::sqrt(a.v[i] / correction2) + a.eps);
      a.weight[i] -= a.learning_rate * (update + a.decay * a.weight[i]);
    }
  });
}

/// sum x^2, in double and in the order of x.
inline double sum_of_squares(Device&, const float* x, std::int64_t count) {
  double sum = 0;
  for (std::int64_t i = 0; i < count; ++i) sum += double{x[i]} * double{x[i]};
  return sum;
}

}  // namespace typeformer::inline TYPEFORMER_ABI::cpu
