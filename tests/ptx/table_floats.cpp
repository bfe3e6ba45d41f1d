#include "table.hpp"

namespace ptx {
namespace {

template <class T>
void add_arithmetic(Table& t, const char* type) {
  for (const char* rounding : {".", ".rn."}) {
    t("add", rounding, type) = lanes<[](T a, T b) -> T { return a + b; }>();
    t("sub", rounding, type) = lanes<[](T a, T b) -> T { return a - b; }>();
    t("mul", rounding, type) = lanes<[](T a, T b) -> T { return a * b; }>();
  }
  t("fma.rn.", type) = lanes<[](T a, T b, T c) -> T { return std::fma(a, b, c); }>();
  t("mad.rn.", type) = t("fma.rn.", type);
  t("div.rn.", type) = lanes<[](T a, T b) -> T { return a / b; }>();
  t("sqrt.rn.", type) = lanes<[](T a) -> T { return std::sqrt(a); }>();
  t("rcp.rn.", type) = lanes<[](T a) -> T { return 1 / a; }>();
  t("min.", type) = lanes<[](T a, T b) -> T { return minimum(a, b); }>();
  t("max.", type) = lanes<[](T a, T b) -> T { return maximum(a, b); }>();
  t("abs.", type) = lanes<[](T a) -> T { return std::fabs(a); }>();
  t("neg.", type) = lanes<[](T a) -> T { return -a; }>();
  t("copysign.", type) = lanes<[](T a, T b) -> T { return std::copysign(b, a); }>();
  t("testp.finite.", type) = lanes<[](T a) -> bool { return std::isfinite(a); }>();
  t("testp.infinite.", type) = lanes<[](T a) -> bool { return std::isinf(a); }>();
  t("testp.notanumber.", type) = lanes<[](T a) -> bool { return std::isnan(a); }>();
  t("testp.number.", type) = lanes<[](T a) -> bool { return !std::isnan(a); }>();
  t("testp.normal.", type) = lanes<[](T a) -> bool { return std::isnormal(a); }>();
  t("testp.subnormal.", type) = lanes<[](T a) -> bool { return std::fpclassify(a) == FP_SUBNORMAL; }>();
  add_comparisons<T, [](auto value) { return value; }>(t, type, true);
}

float saturate(float value) { return value > 0 ? std::min(value, 1.f) : 0.f; }
template <auto choose>
float propagating(float a, float b) {
  return a != a || b != b ? bits<float>(0x7fffffffu) : choose(a, b);
}

template <Rounding rounding>
float to_float(double value) {
  return bits<float>(narrow(value, 8, 23, rounding));
}
template <Rounding rounding>
void add_directed(Table& t, const char* name) {
  t("add.", name, ".f32") = lanes<[](float a, float b) -> float { return to_float<rounding>(sum_to_odd(a, b)); }>();
  t("sub.", name, ".f32") =
      lanes<[](float a, float b) -> float { return to_float<rounding>(sum_to_odd(a, -double{b})); }>();
  t("mul.", name, ".f32") = lanes<[](float a, float b) -> float { return to_float<rounding>(double{a} * b); }>();
  t("fma.", name, ".f32") =
      lanes<[](float a, float b, float c) -> float { return to_float<rounding>(sum_to_odd(double{a} * b, c)); }>();
}

void add_approximations(Table& t) {
  t("ex2.approx.f32") = lanes<[](float a) -> float { return approximate(std::exp2(double{a})); }>();
  t("lg2.approx.f32") = lanes<[](float a) -> float { return approximate(std::log2(double{a})); }>();
  t("rcp.approx.f32") = lanes<[](float a) -> float { return approximate(1 / double{a}); }>();
  t("sqrt.approx.f32") = lanes<[](float a) -> float { return approximate(std::sqrt(double{a})); }>();
  t("rsqrt.approx.f32") = lanes<[](float a) -> float { return approximate(1 / std::sqrt(double{a})); }>();
  t("rsqrt.approx.f64") = lanes<[](double a) -> double { return 1 / std::sqrt(a); }>();
  t("rcp.approx.f64") = lanes<[](double a) -> double { return 1 / a; }>();
  t("sin.approx.f32") = lanes<[](float a) -> float { return approximate(std::sin(double{a})); }>();
  t("cos.approx.f32") = lanes<[](float a) -> float { return approximate(std::cos(double{a})); }>();
  t("tanh.approx.f32") = lanes<[](float a) -> float { return approximate(std::tanh(double{a})); }>();
  t("div.approx.f32") = lanes<[](float a, float b) -> float { return approximate(double{a} / b); }>();
  t("div.full.f32") = t("div.approx.f32");
}

}  // namespace

void add_floats(Table& t) {
  add_arithmetic<float>(t, "f32");
  add_arithmetic<double>(t, "f64");
  add_directed<Rounding::zero>(t, "rz");
  add_directed<Rounding::down>(t, "rm");
  add_directed<Rounding::up>(t, "rp");
  add_approximations(t);
  t("max.NaN.f32") = lanes<[](float a, float b) -> float { return propagating<maximum<float>>(a, b); }>();
  t("min.NaN.f32") = lanes<[](float a, float b) -> float { return propagating<minimum<float>>(a, b); }>();
  t("add.sat.f32") = lanes<[](float a, float b) -> float { return saturate(a + b); }>();
  t("mul.sat.f32") = lanes<[](float a, float b) -> float { return saturate(a * b); }>();
  t("fma.rn.sat.f32") = lanes<[](float a, float b, float c) -> float { return saturate(std::fma(a, b, c)); }>();
}

}  // namespace ptx
