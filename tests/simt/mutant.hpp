/// What mutate_logic.py writes into a kernel file: operators and values that one mutant of many changes.
///
///   a < b                      a < mutant::Op{17} < b             precedence stays, so that nothing need be parsed
///   min(a, b)                  mutant::least(17, a, b)
///   if (there)                 if (mutant::condition(17, there))
///   x = 0.f;                   { if (mutant::keeps(17)) x = mutant::literal(18, 0.f); }
///
/// TYPEFORMER_MUTANT=site.variant chooses one; at the end the sites that were reached are added to the file
/// TYPEFORMER_MUTANT_REACHED. Constant expressions stay as they are.
#pragma once
#include <cmath>
#include <concepts>
#include <cstdio>
#include <cstdlib>
#include <type_traits>

namespace mutant {

inline constexpr int most_sites = 8192;

/// The chosen site and variant, and which sites were reached.
struct State {
  int site = -1, variant = -1;
  bool reached[most_sites] = {};

  State() {
    if (const char* name = std::getenv("TYPEFORMER_MUTANT")) std::sscanf(name, "%d.%d", &site, &variant);
  }
  ~State() {
    const char* name = std::getenv("TYPEFORMER_MUTANT_REACHED");
    std::FILE* file = name ? std::fopen(name, "a") : nullptr;
    if (!file) return;
    for (int i = 0; i < most_sites; ++i)
      if (reached[i]) std::fprintf(file, "%d\n", i);
    std::fclose(file);
  }
};
inline State state;

/// The variant that is chosen at this site; negative: none.
[[gnu::always_inline]] constexpr int variant_at(int site) {
  if (std::is_constant_evaluated()) return -1;
  state.reached[site] = true;
  return state.site == site ? state.variant : -1;
}

struct Op {
  int site;
};
template <class A>
struct Left {
  A value;
  int site;
};
/// What stands right of a compound assignment.
template <class B>
struct Right {
  B value;
  int site;
};

template <class T>
concept Whole = std::is_integral_v<T> || std::is_pointer_v<T>;

#define MUTANT_LEFT(op)                                              \
  template <class A>                                                 \
  [[gnu::always_inline]] constexpr Left<A> operator op(A a, Op at) { \
    return {a, at.site};                                             \
  }
#define MUTANT_BINARY(op, first, second)                                                            \
  MUTANT_LEFT(op)                                                                                   \
  template <class A, class B>                                                                       \
  [[gnu::always_inline]] constexpr auto operator op(Left<A> left, B b)->decltype(left.value op b) { \
    using Result = decltype(left.value op b);                                                       \
    const A a = left.value;                                                                         \
    const int variant = variant_at(left.site);                                                      \
    if (variant == 0) return static_cast<Result>(first);                                            \
    if (variant == 1) return static_cast<Result>(second);                                           \
    return a op b;                                                                                  \
  }

/// The result of an operation that has no sense for these types is `otherwise`.
#define MUTANT_TRY(name, op)                                 \
  template <class Result, class A, class B>                  \
  constexpr Result name(A a, B b, Result otherwise) {        \
    if constexpr (requires { static_cast<Result>(a op b); }) \
      return static_cast<Result>(a op b);                    \
    else                                                     \
      return otherwise;                                      \
  }
MUTANT_TRY(sum, +)
MUTANT_TRY(difference, -)
MUTANT_TRY(multiple, *)
template <class Result, class A>
constexpr Result as(A a, Result otherwise) {
  if constexpr (requires { static_cast<Result>(a); })
    return static_cast<Result>(a);
  else
    return otherwise;
}
/// x + 1, or `otherwise` where x has no neighbours.
template <class T>
constexpr T next(T x, T otherwise) {
  if constexpr (Whole<T> && !std::is_same_v<T, bool>)
    return x + 1;
  else
    return otherwise;
}

MUTANT_BINARY(+, (difference<Result>(a, b, a + b)), (next<Result>(a + b, as<Result>(a, a + b))))
MUTANT_BINARY(-, (sum<Result>(a, b, next<Result>(a - b, a - b))), (next<Result>(a - b, as<Result>(a, a - b))))
MUTANT_BINARY(*, a, b)
MUTANT_BINARY(/, a, (next<Result>(a / b, multiple<Result>(a, b, a))))
MUTANT_BINARY(%, a, (a % b + 1))
MUTANT_BINARY(<<, a, (a << (b + 1)))
MUTANT_BINARY(>>, a, (a >> (b + 1)))
MUTANT_BINARY(&, a, b)
MUTANT_BINARY(|, a, b)
MUTANT_BINARY(^, a, b)

#define MUTANT_COMPARISON(op, other)                                     \
  MUTANT_LEFT(op)                                                        \
  template <class A, class B>                                            \
  [[gnu::always_inline]] constexpr bool operator op(Left<A> left, B b) { \
    const int variant = variant_at(left.site);                           \
    if (variant == 0) return left.value other b;                         \
    if (variant == 1) return false;                                      \
    if (variant == 2) return true;                                       \
    return left.value op b;                                              \
  }
MUTANT_COMPARISON(<, <=)
MUTANT_COMPARISON(<=, <)
MUTANT_COMPARISON(>, >=)
MUTANT_COMPARISON(>=, >)
MUTANT_COMPARISON(==, !=)
MUTANT_COMPARISON(!=, ==)

/// a is replaced, or changes by one more where it counts.
template <class A, class B>
constexpr A& replace(A& a, B b) {
  if constexpr (requires { a = static_cast<A>(b); }) return a = static_cast<A>(b);
  return a;
}
#define MUTANT_ASSIGNMENT(op, first, last)                                \
  template <class B>                                                      \
  [[gnu::always_inline]] constexpr Right<B> operator op(Op at, B b) {     \
    return {b, at.site};                                                  \
  }                                                                       \
  template <class A, class B>                                             \
  [[gnu::always_inline]] constexpr A& operator op(A& a, Right<B> right) { \
    const B b = right.value;                                              \
    const int variant = variant_at(right.site);                           \
    if (variant == 0) return first;                                       \
    if (variant == 1) return a;                                           \
    if (variant == 2) return last;                                        \
    return a op b;                                                        \
  }
#define MUTANT_COUNT(op) Whole<B> ? (a op next<B>(b, b)) : replace(a, b)
MUTANT_ASSIGNMENT(+=, a -= b, MUTANT_COUNT(+=))
MUTANT_ASSIGNMENT(-=, a += b, MUTANT_COUNT(-=))
MUTANT_ASSIGNMENT(*=, replace(a, b), a)
MUTANT_ASSIGNMENT(/=, replace(a, b), a)
MUTANT_ASSIGNMENT(|=, replace(a, b), a)
MUTANT_ASSIGNMENT(&=, replace(a, b), a)
MUTANT_ASSIGNMENT(^=, replace(a, b), a)

template <class T>
[[gnu::always_inline]] constexpr bool condition(int site, T&& value) {
  const bool whether = static_cast<bool>(value);
  const int variant = variant_at(site);
  if (variant == 0) return false;
  if (variant == 1) return true;
  return whether;
}

/// Zero becomes one, other floats become zero, other integers grow by one.
template <class T>
[[gnu::always_inline]] constexpr T literal(int site, T value) {
  if (variant_at(site) != 0) return value;
  if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>)
    return value + 1;
  else
    return value == T{0} ? T{1} : T{0};
}

/// False when the statement is left out.
[[gnu::always_inline]] constexpr bool keeps(int site) { return variant_at(site) != 0; }

#define MUTANT_CHOICE(name, better)                                                    \
  template <class A, class B>                                                          \
  [[gnu::always_inline]] constexpr std::common_type_t<A, B> name(int site, A a, B b) { \
    const int variant = variant_at(site);                                              \
    if (variant == 0) return a;                                                        \
    if (variant == 1) return b;                                                        \
    return better;                                                                     \
  }
MUTANT_CHOICE(least, (b < a ? b : a))
MUTANT_CHOICE(most, (a < b ? b : a))
MUTANT_CHOICE(most_float, std::fmax(a, b))

}  // namespace mutant
