/// The two number types of the CUDA operations, for tests that know nothing of CUDA.
#pragma once
#include <bit>
#include <cstdint>

namespace support {

enum class Number { f32, bf16 };

/// The nearest number of the type, ties to even.
inline double rounded(Number number, double value) {
  const auto single = static_cast<float>(value);
  if (number == Number::f32 || single != single) return static_cast<double>(single);
  const auto bits = std::bit_cast<std::uint32_t>(single);
  return static_cast<double>(std::bit_cast<float>((bits + 0x7fffu + ((bits >> 16) & 1u)) & 0xffff0000u));
}

}  // namespace support
