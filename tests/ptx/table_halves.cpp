#include "table.hpp"

namespace ptx {
namespace {

/// Does the same with both halves of words.
template <auto function, class... Words>
u32 both(Words... words) {
  const auto low = function(static_cast<u16>(words)...), high = function(static_cast<u16>(words >> 16)...);
  return static_cast<u32>(low) | static_cast<u32>(high) << 16;
}
template <auto function>
void add_one(Table& t, const char* name, const char* rounding, const char* type) {
  t(name, rounding, type) = lanes<[](u16 a) -> u16 { return function(a); }>();
  t(name, rounding, type, "x2") = lanes<[](u32 a) -> u32 { return both<function>(a); }>();
}
template <auto function>
void add_two(Table& t, const char* name, const char* rounding, const char* type) {
  t(name, rounding, type) = lanes<[](u16 a, u16 b) -> u16 { return function(a, b); }>();
  t(name, rounding, type, "x2") = lanes<[](u32 a, u32 b) -> u32 { return both<function>(a, b); }>();
}
template <auto function>
void add_three(Table& t, const char* name, const char* rounding, const char* type) {
  t(name, rounding, type) = lanes<[](u16 a, u16 b, u16 c) -> u16 { return function(a, b, c); }>();
  t(name, rounding, type, "x2") = lanes<[](u32 a, u32 b, u32 c) -> u32 { return both<function>(a, b, c); }>();
}

/// wide, narrowed: from and to a float or double that holds the type. Sums, differences and products of two are exact
/// enough in double for one rounding to be the only one.
template <auto wide, auto narrowed>
void add_type(Table& t, const char* type) {
  for (const char* rounding : {".", ".rn."}) {
    add_two<[](u16 a, u16 b) { return narrowed(sum_to_odd(wide(a), wide(b))); }>(t, "add", rounding, type);
    add_two<[](u16 a, u16 b) { return narrowed(sum_to_odd(wide(a), -wide(b))); }>(t, "sub", rounding, type);
    add_two<[](u16 a, u16 b) { return narrowed(wide(a) * wide(b)); }>(t, "mul", rounding, type);
  }
  add_three<[](u16 a, u16 b, u16 c) { return narrowed(sum_to_odd(wide(a) * wide(b), wide(c))); }>(t, "fma", ".rn.",
                                                                                                  type);
  add_two<[](u16 a, u16 b) { return narrowed(minimum(wide(a), wide(b))); }>(t, "min", ".", type);
  add_two<[](u16 a, u16 b) { return narrowed(maximum(wide(a), wide(b))); }>(t, "max", ".", type);
  add_one<[](u16 a) { return static_cast<u16>(a ^ 0x8000); }>(t, "neg", ".", type);
  add_one<[](u16 a) { return static_cast<u16>(a & 0x7fff); }>(t, "abs", ".", type);
  add_one<[](u16 a) { return narrowed(std::exp2(wide(a))); }>(t, "ex2", ".approx.", type);
  add_one<[](u16 a) { return narrowed(std::tanh(wide(a))); }>(t, "tanh", ".approx.", type);
  add_comparisons<u16, wide>(t, type, true);
}

constexpr auto half_to_double = [](u16 value) { return double{from_half(value)}; };
constexpr auto bf16_to_double = [](u16 value) { return double{from_bf16(value)}; };
constexpr auto double_to_half = [](double value) { return to_half(value); };
constexpr auto double_to_bf16 = [](double value) { return to_bf16(value); };

/// Two values to a word, the first one above.
template <auto narrowed>
u32 pack(float high, float low) {
  return static_cast<u32>(narrowed(high)) << 16 | static_cast<u32>(narrowed(low));
}
u16 bf16_toward_zero(float value) { return static_cast<u16>(narrow(value, 8, 7, Rounding::zero)); }
u16 relu_bf16(float value) { return float_to_bf16(maximum(value, 0.f)); }
u16 half_of_float(float value) { return to_half(value); }

void add_fp8(Table& t) {
  t("cvt.rn.satfinite.e4m3x2.f32") =
      lanes<[](float high, float low) -> u16 { return static_cast<u16>(to_e4m3(high) << 8 | to_e4m3(low)); }>();
  t("cvt.rn.satfinite.e5m2x2.f32") =
      lanes<[](float high, float low) -> u16 { return static_cast<u16>(to_e5m2(high) << 8 | to_e5m2(low)); }>();
  t("cvt.rn.satfinite.e4m3x2.f16x2") = lanes<[](u32 a) -> u16 {
    return static_cast<u16>(to_e4m3(from_half(static_cast<u16>(a >> 16))) << 8 |
                            to_e4m3(from_half(static_cast<u16>(a))));
  }>();
  t("cvt.rn.satfinite.e5m2x2.f16x2") = lanes<[](u32 a) -> u16 {
    return static_cast<u16>(to_e5m2(from_half(static_cast<u16>(a >> 16))) << 8 |
                            to_e5m2(from_half(static_cast<u16>(a))));
  }>();
  t("cvt.rn.f16x2.e4m3x2") = lanes<[](u16 a) -> u32 {
    return static_cast<u32>(to_half(from_e4m3(static_cast<u8>(a >> 8)))) << 16 | to_half(from_e4m3(static_cast<u8>(a)));
  }>();
  t("cvt.rn.f16x2.e5m2x2") =
      lanes<[](u16 a) -> u32 { return (static_cast<u32>(a) & 0xff00) << 16 | (static_cast<u32>(a) & 0xff) << 8; }>();
}

}  // namespace

void add_halves(Table& t) {
  add_type<half_to_double, double_to_half>(t, "f16");
  add_type<bf16_to_double, double_to_bf16>(t, "bf16");
}

/// Conversions that a general one cannot express, and those that kernels use most.
void add_conversions(Table& t) {
  add_fp8(t);
  t("cvt.rn.bf16x2.f32") = lanes<[](float high, float low) -> u32 { return pack<float_to_bf16>(high, low); }>();
  t("cvt.rn.f16x2.f32") = lanes<[](float high, float low) -> u32 { return pack<half_of_float>(high, low); }>();
  t("cvt.rn.relu.bf16x2.f32") = lanes<[](float high, float low) -> u32 { return pack<relu_bf16>(high, low); }>();
  t("cvt.rz.bf16x2.f32") = lanes<[](float high, float low) -> u32 { return pack<bf16_toward_zero>(high, low); }>();
  t("cvt.rn.bf16.f32") = lanes<[](float a) -> u16 { return float_to_bf16(a); }>();
  t("cvt.f32.bf16") = lanes<[](u16 a) -> float { return from_bf16(a); }>();
  t("cvt.f32.f16") = lanes<[](u16 a) -> float { return from_half(a); }>();
  t("cvt.s64.s32") = lanes<[](s32 a) -> s64 { return a; }>();
  t("cvt.u64.u32") = lanes<[](u32 a) -> u64 { return a; }>();
  t("cvt.u32.u64") = lanes<[](u64 a) -> u32 { return static_cast<u32>(a); }>();
  t("cvt.rn.f32.s32") = lanes<[](s32 a) -> float { return static_cast<float>(a); }>();
  t("cvt.rna.tf32.f32") =
      lanes<[](float a) -> u32 { return a != a ? 0x7fffffffu : (bits<u32>(a) + 0x1000u) & 0xffffe000u; }>();
}

const Table& table() {
  static const Table all = [] {
    Table t;
    add_integers(t);
    add_floats(t);
    add_halves(t);
    add_bits(t);
    add_conversions(t);
    return t;
  }();
  return all;
}

}  // namespace ptx
