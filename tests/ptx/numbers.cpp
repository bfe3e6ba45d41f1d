#include "numbers.hpp"

namespace ptx {

u32 narrow(double value, int exponent_bits, int mantissa_bits, Rounding rounding) {
  const u32 sign_bit = 1u << (exponent_bits + mantissa_bits), sign = std::signbit(value) ? sign_bit : 0;
  const u32 infinity = ((1u << exponent_bits) - 1) << mantissa_bits;
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const double size = std::fabs(value);
  if (value != value) return sign_bit - 1;
  if (std::isinf(value)) return sign | infinity;
  if (size == 0) return sign;
  int exponent = std::max(std::ilogb(size), 1 - bias);
  const double scaled = std::ldexp(size, mantissa_bits - exponent);
  double whole = std::floor(scaled);
  const double rest = scaled - whole;
  const bool away = (rounding == Rounding::down && sign) || (rounding == Rounding::up && !sign);
  if (rounding == Rounding::nearest ? rest > 0.5 || (rest == 0.5 && std::fmod(whole, 2) == 1) : away && rest > 0)
    ++whole;
  if (whole == std::ldexp(1.0, mantissa_bits + 1)) {
    whole /= 2;
    ++exponent;
  }
  if (exponent > bias) return sign | (rounding == Rounding::nearest || away ? infinity : infinity - 1);
  const u32 mantissa = static_cast<u32>(whole);
  if (!(mantissa >> mantissa_bits)) return sign | mantissa;  // subnormal
  return sign | static_cast<u32>(exponent + bias) << mantissa_bits | (mantissa & ((1u << mantissa_bits) - 1));
}

u8 to_e4m3(float value) {
  const u32 sign = std::signbit(value) ? 0x80 : 0;
  if (value != value) return 0x7f;
  const double size = std::min(std::fabs(static_cast<double>(value)), 448.0);
  if (size == 0) return static_cast<u8>(sign);
  int exponent = std::max(std::ilogb(size), -6);
  double mantissa = std::nearbyint(std::ldexp(size, 3 - exponent));
  if (mantissa == 16) {
    mantissa = 8;
    ++exponent;
  }
  const auto whole = static_cast<u32>(mantissa);
  return static_cast<u8>(sign | (whole < 8 ? whole : static_cast<u32>(exponent + 7) << 3 | (whole - 8)));
}
u8 to_e5m2(float value) {
  if (value != value) return 0x7f;
  return static_cast<u8>(std::min(narrow(std::fabs(value), 5, 2), 0x7bu) | (std::signbit(value) ? 0x80u : 0));
}
float from_e4m3(u8 number) {
  const int exponent = number >> 3 & 15, mantissa = number & 7;
  const float size = exponent == 15 && mantissa == 7 ? NAN
                     : exponent                      ? std::ldexp(8.f + static_cast<float>(mantissa), exponent - 10)
                                                     : std::ldexp(static_cast<float>(mantissa), -9);
  return number & 0x80 ? -size : size;
}

}  // namespace ptx
