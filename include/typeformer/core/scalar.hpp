/// Number types that weights, activations and caches are stored in, and their conversions from and to float.
#pragma once
#include <cstdint>
#include <type_traits>

#include "typeformer/core/annotate.hpp"

namespace typeformer::inline TYPEFORMER_ABI {

/// bfloat16: the upper half of a float. Storage only; arithmetic is done in float.
struct bf16 {
  std::uint16_t bits = 0;
  bool operator==(const bf16&) const = default;
};

/// IEEE binary16. Storage only; arithmetic is done in float.
struct f16 {
  std::uint16_t bits = 0;
  bool operator==(const f16&) const = default;
};

/// A type that weights or activations can be stored in.
template <class T>
concept Storage = std::is_same_v<T, float> || std::is_same_v<T, bf16> || std::is_same_v<T, f16>;

TYPEFORMER_HD constexpr float to_float(float value) { return value; }
TYPEFORMER_HD constexpr float to_float(bf16 value) {
  return __builtin_bit_cast(float, std::uint32_t{value.bits} << 16);
}
TYPEFORMER_HD constexpr float to_float(f16 value) {
  const std::uint32_t sign = std::uint32_t{value.bits & 0x8000u} << 16;
  const std::uint32_t exponent = (value.bits >> 10) & 31u, mantissa = value.bits & 1023u;
  if (exponent == 31) return __builtin_bit_cast(float, sign | 0x7f800000u | (mantissa << 13));  // infinity, NaN
  if (exponent == 0) {  // zero, subnormal: units of 2^-24
    const float magnitude = static_cast<float>(mantissa) * 5.9604644775390625e-8f;
    return sign ? -magnitude : magnitude;
  }
  return __builtin_bit_cast(float, sign | ((exponent + 112u) << 23) | (mantissa << 13));
}

/// Rounds to nearest, ties to even; overflow becomes infinity, a NaN stays a (quiet) NaN of its sign.
template <Storage T>
TYPEFORMER_HD constexpr T from_float(float value);

template <>
TYPEFORMER_HD constexpr float from_float<float>(float value) {
  return value;
}

template <>
TYPEFORMER_HD constexpr bf16 from_float<bf16>(float value) {
  const std::uint32_t bits = __builtin_bit_cast(std::uint32_t, value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return bf16{static_cast<std::uint16_t>((bits >> 16) | 0x40u)};
  return bf16{static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16)};
}

template <>
TYPEFORMER_HD constexpr f16 from_float<f16>(float value) {
  std::uint32_t bits = __builtin_bit_cast(std::uint32_t, value);
  const auto sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000u);
  bits &= 0x7fffffffu;
  if (bits > 0x7f800000u) return f16{static_cast<std::uint16_t>(sign | 0x7e00u)};
  if (bits >= 0x477ff000u) return f16{static_cast<std::uint16_t>(sign | 0x7c00u)};  // rounds to 65536 or more
  if (bits < 0x38800000u) {  // below 2^-14: adding 0.5 makes the float unit round to multiples of 2^-24
    const float shifted = __builtin_bit_cast(float, bits) + 0.5f;
    return f16{static_cast<std::uint16_t>(sign | (__builtin_bit_cast(std::uint32_t, shifted) - 0x3f000000u))};
  }
  const std::uint32_t rounded = bits + 0xc8000fffu + ((bits >> 13) & 1u);
  return f16{static_cast<std::uint16_t>(sign | (rounded >> 13))};
}

}  // namespace typeformer
