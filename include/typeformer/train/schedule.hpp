/// Learning rates that change from step to step.
#pragma once
#include <cmath>
#include <cstdint>
#include <numbers>
#include <string>

#include "typeformer/core/annotate.hpp"
#include "typeformer/core/error.hpp"

namespace typeformer::inline TYPEFORMER_ABI {

/// Rises linearly from 0 to `peak` over `warmup` steps, then falls along half a cosine to final_share * peak at step
/// `total`, where it stays. `total` must be set. Loshchilov & Hutter 2016, arXiv:1608.03983, eq. 5, without restarts.
struct CosineSchedule {
  float peak = 1e-3f;
  std::int64_t warmup = 0;
  std::int64_t total = 0;
  float final_share = 0.f;  ///< of the peak; 0.1 in GPT-3, Qwen, OLMo 2

  /// The learning rate of update number `step`, from 0. The very first one is 0 when there is a warm-up. Throws Error
  /// unless 0 <= warmup <= total and 0 < total.
  float rate(std::int64_t step) const {
    if (total < 1 || warmup < 0 || warmup > total)
      throw Error("CosineSchedule", "warmup, total", "0 <= warmup <= total and 0 < total",
                  std::to_string(warmup) + ", " + std::to_string(total));
    if (step < warmup) return peak * (static_cast<float>(step) / static_cast<float>(warmup));
    if (step >= total) return peak * final_share;
    const double progress = static_cast<double>(step - warmup) / static_cast<double>(total - warmup);
    const double share = .5 * (1. + std::cos(std::numbers::pi * progress));
    return static_cast<float>(double{peak} * (final_share + (1. - double{final_share}) * share));
  }
};

}  // namespace typeformer
