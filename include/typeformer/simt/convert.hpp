/// Conversions between float and the 16-bit types inside kernels: one instruction on the GPU.
#pragma once
#include <bit>
#include <cstdint>

#include "typeformer/core/scalar.hpp"

#if defined(__CUDACC__)
#define TYPEFORMER_SIMT_DEVICE __device__ __forceinline__
#else
#define TYPEFORMER_SIMT_DEVICE inline
#endif

namespace typeformer::inline TYPEFORMER_ABI::simt {

/// The low and high half of a word as floats.
template <class T>
TYPEFORMER_SIMT_DEVICE float unpack_low(unsigned pair);
template <class T>
TYPEFORMER_SIMT_DEVICE float unpack_high(unsigned pair);
/// Two floats as one word, `low` in the low half. Rounds to nearest, ties to even; every NaN becomes 0x7fff.
template <class T>
TYPEFORMER_SIMT_DEVICE unsigned pack(float low, float high);

template <>
TYPEFORMER_SIMT_DEVICE float unpack_low<bf16>(unsigned pair) {
#if defined(__CUDA_ARCH__)
  return __uint_as_float(pair << 16);
#else
  return std::bit_cast<float>(pair << 16);
#endif
}
template <>
TYPEFORMER_SIMT_DEVICE float unpack_high<bf16>(unsigned pair) {
#if defined(__CUDA_ARCH__)
  return __uint_as_float(pair & 0xffff0000u);
#else
  return std::bit_cast<float>(pair & 0xffff0000u);
#endif
}
template <>
TYPEFORMER_SIMT_DEVICE float unpack_low<f16>(unsigned pair) {
#if defined(__CUDA_ARCH__)
  float result;
  asm("{ .reg .b16 l, h; mov.b32 {l, h}, %1; cvt.f32.f16 %0, l; }" : "=f"(result) : "r"(pair));
  return result;
#else
  return to_float(f16{static_cast<std::uint16_t>(pair)});
#endif
}
template <>
TYPEFORMER_SIMT_DEVICE float unpack_high<f16>(unsigned pair) {
#if defined(__CUDA_ARCH__)
  float result;
  asm("{ .reg .b16 l, h; mov.b32 {l, h}, %1; cvt.f32.f16 %0, h; }" : "=f"(result) : "r"(pair));
  return result;
#else
  return to_float(f16{static_cast<std::uint16_t>(pair >> 16)});
#endif
}

#if !defined(__CUDA_ARCH__)
/// What the device's conversion gives: as from_float, but every NaN is 0x7fff.
template <class T>
inline std::uint16_t device_bits(float value) {
  return value != value ? std::uint16_t{0x7fff} : from_float<T>(value).bits;
}
#endif

template <>
TYPEFORMER_SIMT_DEVICE unsigned pack<bf16>(float low, float high) {
#if defined(__CUDA_ARCH__)
  unsigned result;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(result) : "f"(high), "f"(low));
  return result;
#else
  return device_bits<bf16>(low) | static_cast<unsigned>(device_bits<bf16>(high)) << 16;
#endif
}
template <>
TYPEFORMER_SIMT_DEVICE unsigned pack<f16>(float low, float high) {
#if defined(__CUDA_ARCH__)
  unsigned result;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(result) : "f"(high), "f"(low));
  return result;
#else
  return device_bits<f16>(low) | static_cast<unsigned>(device_bits<f16>(high)) << 16;
#endif
}

/// A stored value as float.
TYPEFORMER_SIMT_DEVICE float widen(float value) { return value; }
TYPEFORMER_SIMT_DEVICE float widen(bf16 value) { return unpack_low<bf16>(value.bits); }
TYPEFORMER_SIMT_DEVICE float widen(f16 value) { return unpack_low<f16>(value.bits); }

/// A float as a stored value: rounds to nearest, ties to even; every NaN becomes 0x7fff in 16 bits.
template <class T>
TYPEFORMER_SIMT_DEVICE T narrow(float value) {
  if constexpr (sizeof(T) == 4) {
    return value;
  } else {
    T result;
    result.bits = static_cast<std::uint16_t>(pack<T>(value, 0.0f));
    return result;
  }
}

}  // namespace typeformer
