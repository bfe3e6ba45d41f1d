/// What a device computes in: the type of activations, keys and values beside weights of some type.
#pragma once
#include "typeformer/core/annotate.hpp"

namespace typeformer::inline TYPEFORMER_ABI {
namespace detail {

template <class Device, class W>
struct ActivationType {
  using Type = float;
};
template <class Device, class W>
requires requires { typename Device::template Activation<W>; }
struct ActivationType<Device, W> {
  using Type = typename Device::template Activation<W>;
};

}  // namespace detail

/// The type of activations on a Device whose model stores its matrices as W: the device's Activation<W>, or float when
/// it names none. cpu::Device computes in float whatever W is; cuda::Device in W itself, with sums in float.
template <class Device, class W>
using activation_t = typename detail::ActivationType<Device, W>::Type;

}  // namespace typeformer::inline TYPEFORMER_ABI
