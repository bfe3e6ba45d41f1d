/// Random numbers by counter: a seed and an index give the same number on every device. Bits and uniform numbers are
/// the same on every platform too; normal ones as far as its log and cos round alike.
#pragma once
#include <cmath>
#include <cstdint>
#include <numbers>

#include "typeformer/core/annotate.hpp"

namespace typeformer::inline TYPEFORMER_ABI::detail {

/// 64 random bits (splitmix64: Steele et al. 2014, doi:10.1145/2714064.2660195, figure 17, started at `seed`).
constexpr std::uint64_t random_bits(std::uint64_t seed, std::uint64_t index) {
  std::uint64_t z = seed + (index + 1) * 0x9E3779B97F4A7C15u;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}
/// Uniform in [0, 1).
constexpr double uniform(std::uint64_t seed, std::uint64_t index) {
  return static_cast<double>(random_bits(seed, index) >> 11) * 0x1p-53;
}
/// N(0, 1), by Box & Muller.
inline double normal(std::uint64_t seed, std::uint64_t index) {
  const double u = 1. - uniform(seed, 2 * index), v = uniform(seed, 2 * index + 1);  // u in (0, 1]
  return std::sqrt(-2. * std::log(u)) * std::cos(2. * std::numbers::pi * v);
}

}  // namespace typeformer
