/// activate and its backward on the CPU.
#pragma once
#include "typeformer/kernel/contract.hpp"
#include "typeformer/kernel/cpu/device.hpp"

namespace typeformer::inline TYPEFORMER_ABI::cpu {

/// y = f(x), or f(gate, up) with x = gate | up; see ActivateArgs. f is an activation policy, called for every element.
template <class Activation>
void activate(Device& on, const Activation& f, const ActivateArgs<float>& a) {
  constexpr int branches = Activation::gated ? 2 : 1;
  const std::int64_t stride = a.x_stride ? a.x_stride : std::int64_t{branches} * a.width;
  on.parallel(a.rows, 1, [&](std::int64_t first, std::int64_t last) {
    for (auto row = first; row < last; ++row) {
      const float* x = a.x + row * stride;
      float* y = a.y + row * a.width;
      for (int i = 0; i < a.width; ++i) {
        if constexpr (Activation::gated)
          y[i] = f(x[i], x[i + a.width]);
        else
          y[i] = f(x[i]);
      }
    }
  });
}

/// dx = dy times f's derivatives; see ActivateBackwardArgs.
template <class Activation>
void activate_backward(Device& on, const Activation& f, const ActivateBackwardArgs<float>& a) {
  constexpr int branches = Activation::gated ? 2 : 1;
  const std::int64_t dense = std::int64_t{branches} * a.width;
  const std::int64_t x_stride = a.x_stride ? a.x_stride : dense, dx_stride = a.dx_stride ? a.dx_stride : dense;
  on.parallel(a.rows, 1, [&](std::int64_t first, std::int64_t last) {
    for (auto row = first; row < last; ++row) {
      const float* x = a.x + row * x_stride;
      const float* dy = a.dy + row * a.width;
      float* dx = a.dx + row * dx_stride;
      for (int i = 0; i < a.width; ++i) {
        if constexpr (Activation::gated) {
          const float gate = x[i], up = x[i + a.width];
          dx[i] = dy[i] * f.derivative_gate(gate, up);
          dx[i + a.width] = dy[i] * f.derivative_up(gate, up);
        } else {
          dx[i] = dy[i] * f.derivative(x[i]);
        }
      }
    }
  });
}

}  // namespace typeformer::inline TYPEFORMER_ABI::cpu
