/// A number type as a user might bring one: value and derivative, outside the library's namespace.
#pragma once
#include <cmath>

namespace user {

/// value + slope * epsilon, epsilon^2 = 0.
struct Dual {
  double value = 0, slope = 0;
  constexpr Dual() = default;
  constexpr explicit Dual(double v, double s = 0) : value(v), slope(s) {}

  friend Dual operator-(Dual a) { return Dual(-a.value, -a.slope); }
  friend Dual operator+(Dual a, Dual b) { return Dual(a.value + b.value, a.slope + b.slope); }
  friend Dual operator-(Dual a, Dual b) { return Dual(a.value - b.value, a.slope - b.slope); }
  friend Dual operator*(Dual a, Dual b) { return Dual(a.value * b.value, a.slope * b.value + a.value * b.slope); }
  friend Dual operator/(Dual a, Dual b) {
    return Dual(a.value / b.value, (a.slope - a.value / b.value * b.slope) / b.value);
  }
  friend bool operator>(Dual a, Dual b) { return a.value > b.value; }

  friend Dual exp(Dual x) { return Dual(std::exp(x.value), std::exp(x.value) * x.slope); }
  friend Dual log(Dual x) { return Dual(std::log(x.value), x.slope / x.value); }
  friend Dual sqrt(Dual x) { return Dual(std::sqrt(x.value), x.slope / (2 * std::sqrt(x.value))); }
  friend Dual tanh(Dual x) {
    const double cosh = std::cosh(x.value);
    return Dual(std::tanh(x.value), x.slope / (cosh * cosh));
  }
  friend Dual erf(Dual x) {
    return Dual(std::erf(x.value), 1.1283791670955126 * std::exp(-x.value * x.value) * x.slope);  // 2 / sqrt(pi)
  }
};

}  // namespace user
