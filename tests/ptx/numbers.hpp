/// Number formats and the arithmetic that C++ does not have, as the PTX ISA defines it.
#pragma once
#include <algorithm>
#include <bit>
#include <cmath>
#include <type_traits>

#include "module.hpp"

namespace ptx {

template <class To, class From>
To bits(From value) {
  return std::bit_cast<To>(value);
}

enum class Rounding : u8 { nearest, zero, down, up };

/// A number in an IEEE-like format with that many bits of exponent and mantissa, in one rounding; NaN is the canonical
/// one.
u32 narrow(double value, int exponent_bits, int mantissa_bits, Rounding rounding = Rounding::nearest);

inline float from_half(u16 half) {
  const int exponent = half >> 10 & 31;
  const u32 mantissa = half & 1023, sign = static_cast<u32>(half & 0x8000) << 16;
  if (exponent == 31) return bits<float>(sign | 0x7f800000u | mantissa << 13);
  const float size = exponent ? bits<float>(static_cast<u32>(exponent + 112) << 23 | mantissa << 13)
                              : static_cast<float>(mantissa) * 0x1p-24f;
  return bits<float>(bits<u32>(size) | sign);
}
inline float from_bf16(u16 number) { return bits<float>(static_cast<u32>(number) << 16); }
inline u16 to_half(double value) { return static_cast<u16>(narrow(value, 5, 10)); }
inline u16 to_bf16(double value) { return static_cast<u16>(narrow(value, 8, 7)); }
/// The same from a float, without detours.
inline u16 float_to_bf16(float value) {
  const u32 word = bits<u32>(value);
  return value != value ? u16{0x7fff} : static_cast<u16>((word + 0x7fff + (word >> 16 & 1)) >> 16);
}
/// fp8; values too large become the largest one.
u8 to_e4m3(float value);
u8 to_e5m2(float value);
float from_e4m3(u8 number);

/// The sum rounded to double by rounding to odd, so that a second rounding to fewer bits is as if it were the only one.
inline double sum_to_odd(double a, double b) {
  const double sum = a + b, part = sum - a, error = (a - (sum - part)) + (b - part);
  const u64 word = bits<u64>(sum);
  if (!std::isfinite(sum) || error == 0 || word & 1) return sum;
  return bits<double>((error > 0) == (sum > 0) ? word + 1 : word - 1);
}

inline float flush(float value) { return std::fpclassify(value) == FP_SUBNORMAL ? std::copysign(0.f, value) : value; }
template <class T>
T flush(T value) {
  return value;
}

/// Result of an approximate instruction: exact here, or off by up to as many units in the last place as asked for.
inline thread_local int approximate_ulp = 0;
inline float approximate(double exact) {
  const auto value = static_cast<float>(exact);
  if (!approximate_ulp || !std::isnormal(value)) return value;
  const u32 word = bits<u32>(value), range = static_cast<u32>(2 * approximate_ulp + 1);
  return bits<float>(word + (word * 2654435761u >> 16) % range - static_cast<u32>(approximate_ulp));
}

/// NaN loses against a number, -0 is below +0.
template <class T>
T minimum(T a, T b) {
  if (a != a) return b;
  if (b != b) return a;
  if (a == b) return std::signbit(a) ? a : b;
  return a < b ? a : b;
}
template <class T>
T maximum(T a, T b) {
  if (a != a) return b;
  if (b != b) return a;
  if (a == b) return std::signbit(a) ? b : a;
  return a > b ? a : b;
}

// --- integers -------------------------------------------------------------------------------------------------------

inline u32 permute_bytes(u32 a, u32 b, u32 selector) {
  const u64 all = static_cast<u64>(b) << 32 | a;
  u32 result = 0;
  for (int i = 0; i < 4; ++i) {
    const u32 choice = selector >> 4 * i & 15;
    u32 byte = all >> 8 * (choice & 7) & 255;
    if (choice & 8) byte = byte & 0x80 ? 255 : 0;
    result |= byte << 8 * i;
  }
  return result;
}
template <class U>
U insert_bits(U from, U into, u32 position, u32 length) {
  constexpr u32 width = sizeof(U) * 8;
  position &= 255;
  length &= 255;
  if (position >= width) return into;
  const U mask = length >= width ? static_cast<U>(~U{0}) : static_cast<U>((U{1} << length) - 1);
  return (into & ~(mask << position)) | ((from & mask) << position);
}
template <class U>
U shift_left(U value, u32 by) {
  return by >= sizeof(U) * 8 ? U{0} : static_cast<U>(value << by);
}
template <class T>
T shift_right(T value, u32 by) {
  if (by >= sizeof(T) * 8) return std::is_signed_v<T> && value < 0 ? T(-1) : T(0);
  return static_cast<T>(value >> by);
}
template <class T>
T extract_bits(T from, u32 position, u32 length) {
  using U = std::make_unsigned_t<T>;
  constexpr u32 width = sizeof(T) * 8;
  position &= 255;
  length &= 255;
  if (length == 0) return 0;
  U value = static_cast<U>(shift_right(from, position));
  if (length >= width) return static_cast<T>(value);
  value &= (U{1} << length) - 1;
  const u32 sign = std::min(position + length - 1, width - 1);
  if (std::is_signed_v<T> && static_cast<U>(from) >> sign & 1) value |= ~U{0} << length;
  return static_cast<T>(value);
}
/// By zero the ISA leaves the quotient open: all ones, as GPUs do.
template <class T>
T quotient(T a, T b) {
  if (b == 0) return T(-1);
  if constexpr (std::is_signed_v<T>)
    if (b == -1) return static_cast<T>(0 - static_cast<std::make_unsigned_t<T>>(a));
  return static_cast<T>(a / b);
}
template <class T>
T remainder_of(T a, T b) {
  if (b == 0) return a;
  if constexpr (std::is_signed_v<T>)
    if (b == -1) return 0;
  return static_cast<T>(a % b);
}
__extension__ using s128 = __int128;
__extension__ using u128 = unsigned __int128;
template <class T>
T high_product(T a, T b) {
  using Wide = std::conditional_t<std::is_signed_v<T>, s128, u128>;
  return static_cast<T>(static_cast<Wide>(a) * static_cast<Wide>(b) >> sizeof(T) * 8);
}

}  // namespace ptx
