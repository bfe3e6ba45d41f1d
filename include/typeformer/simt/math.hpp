/// Device arithmetic under its CUDA names. Approximate intrinsics give the exact library value here: a GPU's differ by
/// a few units in the last place. Functions that the C library already has (expf, exp2f, tanhf, erff ...) are used as
/// they are.
#pragma once
#include <bit>
#include <cmath>
#include <concepts>
#include <cstdint>

#include "typeformer/core/annotate.hpp"

#if defined(__FAST_MATH__)
#error "The host layer needs NaN and infinity: build CUDA kernels for the host without -ffast-math."
#endif

namespace typeformer::inline TYPEFORMER_ABI::simt {

namespace device {

inline constexpr int warpSize = 32;

using std::isfinite;
using std::isinf;
using std::isnan;

inline int __popc(unsigned value) { return std::popcount(value); }
inline int __popcll(unsigned long long value) { return std::popcount(value); }
inline int __clz(int value) { return std::countl_zero(static_cast<unsigned>(value)); }
inline int __ffs(int value) { return value ? std::countr_zero(static_cast<unsigned>(value)) + 1 : 0; }
inline unsigned __brev(unsigned value) {
  unsigned result = 0;
  for (int bit = 0; bit < 32; ++bit) result |= (value >> bit & 1u) << (31 - bit);
  return result;
}
/// Bytes of the pair (y, x) chosen by the four selectors in s (PTX prmt without sign mode).
inline unsigned __byte_perm(unsigned x, unsigned y, unsigned s) {
  const std::uint64_t pair = std::uint64_t{y} << 32 | x;
  unsigned result = 0;
  for (int i = 0; i < 4; ++i) result |= static_cast<unsigned>(pair >> (8 * (s >> 4 * i & 7u)) & 0xffu) << 8 * i;
  return result;
}
inline unsigned __umulhi(unsigned x, unsigned y) { return static_cast<unsigned>(std::uint64_t{x} * y >> 32); }
inline int __float_as_int(float value) { return std::bit_cast<int>(value); }
inline unsigned __float_as_uint(float value) { return std::bit_cast<unsigned>(value); }
inline float __int_as_float(int value) { return std::bit_cast<float>(value); }
inline float __uint_as_float(unsigned value) { return std::bit_cast<float>(value); }
inline int __float2int_rn(float value) { return static_cast<int>(std::nearbyint(value)); }
inline int __float2int_rz(float value) { return static_cast<int>(value); }
inline int __float2int_rd(float value) { return static_cast<int>(std::floor(value)); }
inline int __float2int_ru(float value) { return static_cast<int>(std::ceil(value)); }
inline float __int2float_rn(int value) { return static_cast<float>(value); }
inline float __uint2float_rn(unsigned value) { return static_cast<float>(value); }

inline float __fadd_rn(float x, float y) { return x + y; }
inline float __fsub_rn(float x, float y) { return x - y; }
inline float __fmul_rn(float x, float y) { return x * y; }
inline float __fmaf_rn(float x, float y, float z) { return std::fma(x, y, z); }
inline float __fdiv_rn(float x, float y) { return x / y; }
inline float __frcp_rn(float x) { return 1.0f / x; }
inline float __fsqrt_rn(float x) { return std::sqrt(x); }
inline float __frsqrt_rn(float x) { return 1.0f / std::sqrt(x); }
/// Clamps to [0, 1]; NaN becomes 0.
inline float __saturatef(float x) { return x > 0.0f ? (x < 1.0f ? x : 1.0f) : 0.0f; }
/// x / y; as on the device, 0 where 2^126 < |y| < infinity.
inline float __fdividef(float x, float y) {
  const float size = std::fabs(y);
  return size > 0x1p126f && !std::isinf(size) && !std::isnan(x) ? x * 0.0f : x / y;
}
// A template, so that a C library that has the function takes precedence.
template <std::same_as<float> T>
T rsqrtf(T x) {
  return 1.0f / std::sqrt(x);
}

inline int min(int a, int b) { return b < a ? b : a; }
inline unsigned min(unsigned a, unsigned b) { return b < a ? b : a; }
inline long min(long a, long b) { return b < a ? b : a; }
inline unsigned long min(unsigned long a, unsigned long b) { return b < a ? b : a; }
inline long long min(long long a, long long b) { return b < a ? b : a; }
inline unsigned long long min(unsigned long long a, unsigned long long b) { return b < a ? b : a; }
inline float min(float a, float b) { return std::fmin(a, b); }
inline double min(double a, double b) { return std::fmin(a, b); }
inline int max(int a, int b) { return a < b ? b : a; }
inline unsigned max(unsigned a, unsigned b) { return a < b ? b : a; }
inline long max(long a, long b) { return a < b ? b : a; }
inline unsigned long max(unsigned long a, unsigned long b) { return a < b ? b : a; }
inline long long max(long long a, long long b) { return a < b ? b : a; }
inline unsigned long long max(unsigned long long a, unsigned long long b) { return a < b ? b : a; }
inline float max(float a, float b) { return std::fmax(a, b); }
inline double max(double a, double b) { return std::fmax(a, b); }

}  // namespace device
}  // namespace typeformer

// The C library declares these names without exporting them, so they are defined as what it declares.
extern "C" {
inline float __expf(float x) noexcept { return std::exp(x); }
inline float __exp10f(float x) noexcept { return std::pow(10.0f, x); }
inline float __logf(float x) noexcept { return std::log(x); }
inline float __log2f(float x) noexcept { return std::log2(x); }
inline float __log10f(float x) noexcept { return std::log10(x); }
inline float __sinf(float x) noexcept { return std::sin(x); }
inline float __cosf(float x) noexcept { return std::cos(x); }
inline float __tanf(float x) noexcept { return std::tan(x); }
inline float __powf(float x, float y) noexcept { return std::pow(x, y); }
inline void __sincosf(float x, float* sine, float* cosine) noexcept {
  *sine = std::sin(x);
  *cosine = std::cos(x);
}
}
