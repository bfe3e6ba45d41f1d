/// Policy values as template arguments: their type, and a type that carries them.
#pragma once
#include <cstddef>
#include <string_view>
#include <type_traits>

#include "typeformer/core/annotate.hpp"

namespace typeformer::inline TYPEFORMER_ABI {

/// The type of a policy value. (nvcc re-emits decltype(V) as decltype((V)), a reference.)
template <auto V>
using policy_t = std::remove_cvref_t<decltype(V)>;

/// A policy value carried by a type: tag argument of an operation, found by argument-dependent lookup.
template <auto V>
struct Fixed {
  static constexpr auto value = V;
};
/// The tag of a value, as in norm_form(fixed<RMSNorm{}>).
template <auto V>
inline constexpr Fixed<V> fixed{};

/// A string as a template argument.
template <std::size_t N>
struct FixedString {
  char text[N]{};
  constexpr FixedString(const char (&s)[N]) {  // NOLINT: implicit, so that Name{"..."} reads well
    for (std::size_t i = 0; i < N; ++i) text[i] = s[i];
  }
  constexpr operator std::string_view() const { return {text, N - 1}; }
};

}  // namespace typeformer
