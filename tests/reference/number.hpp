/// Number types of the judge: float and double as they are, Dual<T> for exact directional derivatives,
/// Var<T> for exact gradients by reverse mode. Formulas are written once, templated on the number type, and call
/// exp, log, tanh, erf, sqrt unqualified after `using std::exp;` and so on.
#pragma once
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace reference {

/// The floating-point type at the bottom of a number type: Base<Var<float>> is float.
template <class T>
struct BaseOf {
  using type = T;
};
template <class T>
using Base = typename BaseOf<T>::type;

/// A number that is not differentiated, in T's own precision.
template <class T>
T constant(double value) {
  return T(static_cast<Base<T>>(value));
}

/// value + slope * epsilon with epsilon^2 = 0: f(Dual{x, d}) is {f(x), f'(x) d}, exact up to rounding.
template <class T>
struct Dual {
  T value{};
  T slope{};
  Dual() = default;
  Dual(T v) : value(v) {}
  Dual(T v, T d) : value(v), slope(d) {}
};
template <class T>
struct BaseOf<Dual<T>> {
  using type = Base<T>;
};

/// The computation that led to the current variables: every node is one result, with its operands' nodes and the
/// partial derivative by each. Node 0 stands for everything that is not differentiated.
template <class T>
class Tape {
 public:
  std::uint32_t leaf() { return close(); }
  /// The next node's operand: d(node)/d(operand) is `partial`.
  void operand(std::uint32_t node, T partial) {
    parents_.push_back(node);
    partials_.push_back(partial);
  }
  std::uint32_t close() {
    ends_.push_back(parents_.size());
    return static_cast<std::uint32_t>(ends_.size() - 1);
  }
  /// Turns d(objective)/d(output) into d(objective)/d(node) for every node; size of `adjoints`: size().
  void reverse(std::vector<T>& adjoints) const {
    for (std::size_t node = ends_.size(); node-- > 1;) {
      for (std::size_t i = ends_[node - 1]; i < ends_[node]; ++i) {
        adjoints[parents_[i]] = adjoints[parents_[i]] + adjoints[node] * partials_[i];
      }
    }
  }
  std::size_t size() const { return ends_.size(); }

 private:
  std::vector<std::uint32_t> parents_;
  std::vector<T> partials_;
  std::vector<std::size_t> ends_ = {0};  // one past the last operand of each node
};

/// A number whose history is kept on a tape; without a tape it is a constant.
template <class T>
struct Var {
  T value{};
  Tape<T>* tape = nullptr;
  std::uint32_t node = 0;
  Var() = default;
  Var(T v) : value(v) {}
  Var(T v, Tape<T>* t, std::uint32_t n) : value(v), tape(t), node(n) {}
};
template <class T>
struct BaseOf<Var<T>> {
  using type = Base<T>;
};

/// f(x) with derivative df at x.
template <class T>
Dual<T> chain(T f, const Dual<T>& x, T df) {
  return {f, df * x.slope};
}
template <class T>
Dual<T> chain(T f, const Dual<T>& x, T dx, const Dual<T>& y, T dy) {
  return {f, dx * x.slope + dy * y.slope};
}
template <class T>
Var<T> chain(T f, const Var<T>& x, T df) {
  if (x.tape == nullptr) return f;
  x.tape->operand(x.node, df);
  return {f, x.tape, x.tape->close()};
}
template <class T>
Var<T> chain(T f, const Var<T>& x, T dx, const Var<T>& y, T dy) {
  Tape<T>* tape = x.tape != nullptr ? x.tape : y.tape;
  if (tape == nullptr) return f;
  if (x.tape != nullptr) tape->operand(x.node, dx);
  if (y.tape != nullptr) tape->operand(y.node, dy);
  return {f, tape, tape->close()};
}

/// Dual or Var.
template <class N>
concept Differentiable = requires(N n) {
  n.value;
  chain(n.value, n, n.value);
};

template <Differentiable N>
N operator+(const N& x, const N& y) {
  using T = decltype(x.value);
  return chain(x.value + y.value, x, T(1), y, T(1));
}
template <Differentiable N>
N operator-(const N& x, const N& y) {
  using T = decltype(x.value);
  return chain(x.value - y.value, x, T(1), y, T(-1));
}
template <Differentiable N>
N operator-(const N& x) {
  using T = decltype(x.value);
  return chain(-x.value, x, T(-1));
}
template <Differentiable N>
N operator*(const N& x, const N& y) {
  return chain(x.value * y.value, x, y.value, y, x.value);
}
template <Differentiable N>
N operator/(const N& x, const N& y) {
  using T = decltype(x.value);
  return chain(x.value / y.value, x, T(1) / y.value, y, -x.value / (y.value * y.value));
}
template <Differentiable N>
bool operator<(const N& x, const N& y) {
  return x.value < y.value;
}
template <Differentiable N>
bool operator>(const N& x, const N& y) {
  return x.value > y.value;
}

template <Differentiable N>
N exp(const N& x) {
  using std::exp;
  const auto f = exp(x.value);
  return chain(f, x, f);
}
template <Differentiable N>
N log(const N& x) {
  using std::log;
  using T = decltype(x.value);
  return chain(log(x.value), x, T(1) / x.value);
}
template <Differentiable N>
N tanh(const N& x) {
  using std::tanh;
  using T = decltype(x.value);
  const auto f = tanh(x.value);
  return chain(f, x, T(1) - f * f);
}
template <Differentiable N>
N erf(const N& x) {
  using std::erf;
  using std::exp;
  const auto two_over_root_pi = constant<decltype(x.value)>(1.1283791670955126);
  return chain(erf(x.value), x, two_over_root_pi * exp(-x.value * x.value));
}
template <Differentiable N>
N sqrt(const N& x) {
  using std::sqrt;
  const auto f = sqrt(x.value);
  return chain(f, x, constant<decltype(x.value)>(0.5) / f);
}
template <Differentiable N>
N sin(const N& x) {
  using std::cos;
  using std::sin;
  return chain(sin(x.value), x, cos(x.value));
}
template <Differentiable N>
N cos(const N& x) {
  using std::cos;
  using std::sin;
  return chain(cos(x.value), x, -sin(x.value));
}
/// x^y for x > 0.
template <Differentiable N>
N pow(const N& x, const N& y) {
  using std::log;
  using std::pow;
  const auto f = pow(x.value, y.value);
  return chain(f, x, y.value * f / x.value, y, f * log(x.value));
}

/// sum over i of a[i] * b[i], added up in order.
template <class T>
T dot(const T* a, const T* b, std::size_t n) {
  T sum = constant<T>(0);
  for (std::size_t i = 0; i < n; ++i) sum = sum + a[i] * b[i];
  return sum;
}
/// The same as one node of the tape, which halves its memory: d/da[i] = b[i], d/db[i] = a[i].
template <class T>
Var<T> dot(const Var<T>* a, const Var<T>* b, std::size_t n) {
  T sum = constant<T>(0);
  Tape<T>* tape = nullptr;
  for (std::size_t i = 0; i < n; ++i) {
    sum = sum + a[i].value * b[i].value;
    if (a[i].tape != nullptr) (tape = a[i].tape)->operand(a[i].node, b[i].value);
    if (b[i].tape != nullptr) (tape = b[i].tape)->operand(b[i].node, a[i].value);
  }
  return tape == nullptr ? Var<T>(sum) : Var<T>(sum, tape, tape->close());
}

}  // namespace reference
