/// Sine and cosine of RoPE's angles inside kernels, without the table in local memory that sinf keeps for large angles.
#pragma once
#include <cmath>
#include <cstdint>

#include "typeformer/kernel/cuda/threads.cuh"

namespace typeformer::inline TYPEFORMER_ABI::cuda::detail {

struct SineCosine {
  float sine = 0.f, cosine = 1.f;
};

/// 64 bits of 1 / (2 pi), from `place` bits (0 to 159) after those of weight 2^32 on.
__device__ __forceinline__ std::uint64_t turns_per_radian(int place) {
  std::uint64_t high = 0x28be60db;  // 1 / (2 pi) = 0.28be60db 9391054a 7f09d5f4 7d4d3770 36d8a566 4f10e410 ...
  unsigned low = 0x9391054a;
  switch (place / 32) {
    case 0:
      break;
    case 1:
      high = 0x28be60db9391054a, low = 0x7f09d5f4;
      break;
    case 2:
      high = 0x9391054a7f09d5f4, low = 0x7d4d3770;
      break;
    case 3:
      high = 0x7f09d5f47d4d3770, low = 0x36d8a566;
      break;
    default:
      high = 0x7d4d377036d8a566, low = 0x4f10e410;
  }
  const int shift = place % 32;
  return high << shift | std::uint64_t{low} << shift >> 32;
}

/// An angle less a whole number of quarter turns: value + tail lies within +-pi/4.
struct ReducedAngle {
  float value = 0.f, tail = 0.f;
  unsigned quarters = 0;  ///< modulo 4
};

/// For 0.5 <= angle < infinity, with an error below 2^-37: the turns are angle's 24 bits times 64 bits of 1 / (2 pi),
/// of which the product's whole turns overflow. Payne & Hanek 1983, "Radian reduction for trigonometric functions".
__device__ __forceinline__ ReducedAngle reduce_angle(float angle) {
  const unsigned bits = __float_as_uint(angle);
  const int exponent = static_cast<int>(bits >> 23) - 150;  // angle = mantissa * 2^exponent
  const std::uint64_t mantissa = (bits & 0x7fffffu) | 0x800000u;
  const std::uint64_t turns = mantissa * turns_per_radian(exponent + 32) + (std::uint64_t{1} << 61);  // * 2^64
  const std::uint64_t quarter = (turns << 2) ^ std::uint64_t{1} << 63;  // the signed rest of a quarter turn, * 2^64
  const int high = static_cast<int>(static_cast<std::int64_t>(quarter) >> 40);
  const auto low = static_cast<unsigned>(quarter >> 8);

  constexpr float half_pi = 1.57079637f, half_pi_rest = -4.37113883e-8f;        // their sum is pi / 2
  const float first = __fmul_rn(static_cast<float>(high), half_pi * 0x1p-24f);  // contracted it would be another
  const float second =
      fmaf(static_cast<float>(high), half_pi * 0x1p-24f, -first) +
      (static_cast<float>(high) * (half_pi_rest * 0x1p-24f) + static_cast<float>(low) * (half_pi * 0x1p-56f));
  const float value = first + second;
  return {value, second - (value - first), static_cast<unsigned>(turns >> 62)};
}

/// sin and cos of a float angle of any size, within 0.69 units in the last place of [0.5, 1), or 4.1e-8 (a correctly
/// rounded result is within 0.5, the C library's within 0.55): tests/cuda/heads_test.cpp measures it. NaN of infinity
/// and NaN.
__device__ __forceinline__ SineCosine sine_cosine(float angle) {
  ReducedAngle reduced{fabsf(angle)};
  if (reduced.value >= .5f) reduced = reduced.value < INFINITY ? reduce_angle(reduced.value) : ReducedAngle{NAN};
  const float x = reduced.value, square = __fmul_rn(x, x);
  const float square_rest = fmaf(x, x, -square);

  // polynomials that interpolate (sin x / x - 1) / x^2 and (cos x - 1 + x^2 / 2) / x^4 at Chebyshev's nodes of +-pi/4
  const float cube = fmaf(square_rest, x, square * x);
  float sine = fmaf(square, 2.72498505e-6f, -1.98400856e-4f);
  sine = fmaf(square, sine, 8.33333191e-3f);
  sine = fmaf(square * cube, sine, reduced.tail * (1.f - .5f * square));
  sine = x + fmaf(cube, -1.66666672e-1f, sine);

  float cosine = fmaf(square, 2.45478805e-5f, -1.38883025e-3f);
  cosine = fmaf(square, cosine, 4.16666642e-2f);
  const float leading = 1.f - .5f * square;
  const float rest = ((1.f - leading) - .5f * square) - fmaf(x, reduced.tail, .5f * square_rest);
  cosine = leading + fmaf(square * square, cosine, rest);

  const bool odd = reduced.quarters & 1u;
  const float of_sine = odd ? cosine : sine, of_cosine = odd ? sine : cosine;
  const bool negative_sine = ((reduced.quarters & 2u) != 0) != (angle < 0.f);
  const bool negative_cosine = ((reduced.quarters + 1u) & 2u) != 0;
  return {negative_sine ? -of_sine : of_sine, negative_cosine ? -of_cosine : of_cosine};
}

}  // namespace typeformer::inline TYPEFORMER_ABI::cuda::detail
