/// The norm of a gradient, and the factor that bounds it.
#pragma once
#include <cmath>
#include <limits>
#include <string>

#include "typeformer/model/arena.hpp"

namespace typeformer::inline TYPEFORMER_ABI {

/// sqrt(sum g^2) over every parameter: the global norm, summed in double. Waits for the device.
template <class M, class Device>
float gradient_norm(Device& on, const ParameterArena<M, Device, float>& gradients) {
  if (&on != &gradients.device())
    throw Error("gradient_norm", "gradients", "gradients made on this device", "those of another device");
  const auto squares = [&](const Buffer<Device, float>& buffer) -> double {
    if (buffer.size() == 0) return 0;
    return sum_of_squares(on, buffer.data(), static_cast<std::int64_t>(buffer.size()));  // what pads the arena is zero
  };
  return static_cast<float>(std::sqrt(squares(gradients.matrices()) + squares(gradients.vectors())));
}

/// The factor that brings a gradient of this norm down to max_norm; 1 below it. Pascanu et al. 2012, arXiv:1211.5063,
/// algorithm 1; with PyTorch's 1e-6, so that the results are its results. NaN when the norm is NaN or infinite: no step
/// may follow.
inline float clip_scale(float norm, float max_norm) {
  if (!(max_norm > 0.f)) throw Error("clip_scale", "max_norm", "a positive number", std::to_string(max_norm));
  if (!std::isfinite(norm)) return std::numeric_limits<float>::quiet_NaN();
  const float scale = max_norm / (norm + 1e-6f);
  return scale > 1.f ? 1.f : scale;
}

}  // namespace typeformer
