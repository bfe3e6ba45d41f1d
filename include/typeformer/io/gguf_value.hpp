/// One metadata entry of a GGUF file and its conversion to C++ values.
#pragma once
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "typeformer/core/annotate.hpp"
#include "typeformer/core/error.hpp"
#include "typeformer/io/dequantize.hpp"
#include "typeformer/io/quote_name.hpp"

namespace typeformer::inline TYPEFORMER_ABI::io {

/// The value types of GGUF metadata, with the file's own numbers.
enum class GgufType : std::uint32_t {
  uint8 = 0,
  int8 = 1,
  uint16 = 2,
  int16 = 3,
  uint32 = 4,
  int32 = 5,
  float32 = 6,
  boolean = 7,
  string = 8,
  array = 9,
  uint64 = 10,
  int64 = 11,
  float64 = 12
};

/// E.g. "uint32"; "type 99" is none.
constexpr std::string_view name_of(GgufType type) noexcept {
  constexpr std::string_view names[] = {"uint8", "int8",   "uint16", "int16",  "uint32", "int32",  "float32",
                                        "bool",  "string", "array",  "uint64", "int64",  "float64"};
  return static_cast<std::size_t>(type) < std::size(names) ? names[static_cast<std::size_t>(type)] : "no known type";
}

/// Bytes of one value; 0 where the length varies (string, array) and for a number that is no type.
constexpr std::size_t size_of(GgufType type) noexcept {
  constexpr std::size_t sizes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
  return static_cast<std::size_t>(type) < std::size(sizes) ? sizes[static_cast<std::size_t>(type)] : 0;
}

/// One entry: key, type, and the values where they lie in the map. Views live as long as the GgufFile.
struct GgufEntry {
  std::string_view key;
  /// Of the value, or of the elements when is_array.
  GgufType type = GgufType::uint8;
  bool is_array = false;
  /// Number of elements; 1 for a value that is no array.
  std::uint64_t count = 1;
  /// The values one after the other, unaligned; a string is its length (8 bytes) and then its characters.
  std::span<const std::byte> bytes;
};

/// A C++ type that one value is read as. Integers take every stored integer type in whose range the value lies,
/// floating types take float32 and float64, bool takes bool, strings take string: never one kind for another.
template <class T>
concept GgufScalar = std::is_same_v<T, bool> || std::is_same_v<T, std::string> || std::is_same_v<T, std::string_view> ||
    std::floating_point<T> || std::is_same_v<T, std::int8_t> || std::is_same_v<T, std::uint8_t> ||
    std::is_same_v<T, short> || std::is_same_v<T, unsigned short> || std::is_same_v<T, int> ||
    std::is_same_v<T, unsigned> || std::is_same_v<T, long> || std::is_same_v<T, unsigned long> ||
    std::is_same_v<T, long long> || std::is_same_v<T, unsigned long long>;

namespace detail {

template <class T>
struct GgufElement {
  using type = T;
  static constexpr bool is_array = false;
};
template <class T>
struct GgufElement<std::vector<T>> {
  using type = T;
  static constexpr bool is_array = true;
};

template <class Stored, class T>
bool assign_number(const std::byte* at, T& out) {
  const Stored value = load_unaligned<Stored>(at);
  if constexpr (std::is_same_v<T, bool> || !std::is_arithmetic_v<T>) {
    return false;
  } else if constexpr (std::integral<Stored> && std::integral<T>) {
    out = static_cast<T>(value);
    return std::in_range<T>(value);
  } else if constexpr (std::floating_point<Stored> && std::floating_point<T>) {
    out = static_cast<T>(value);
    return true;
  } else {
    return false;
  }
}

/// Takes one value off the front of `bytes`; false when it is of another kind, out of T's range, or leaves `bytes`.
template <GgufScalar T>
bool take_value(GgufType type, std::span<const std::byte>& bytes, T& out) {
  constexpr bool wants_string = std::is_same_v<T, std::string> || std::is_same_v<T, std::string_view>;
  if constexpr (wants_string) {
    if (type != GgufType::string || bytes.size() < 8) return false;
    const auto length = load_unaligned<std::uint64_t>(bytes.data());
    if (length > bytes.size() - 8) return false;
    out = T(reinterpret_cast<const char*>(bytes.data() + 8), static_cast<std::size_t>(length));
    bytes = bytes.subspan(8 + static_cast<std::size_t>(length));
    return true;
  } else {
    const std::size_t size = size_of(type);
    if (size == 0 || bytes.size() < size) return false;
    const std::byte* const at = bytes.data();
    bytes = bytes.subspan(size);
    switch (type) {
      case GgufType::uint8:
        return assign_number<std::uint8_t>(at, out);
      case GgufType::int8:
        return assign_number<std::int8_t>(at, out);
      case GgufType::uint16:
        return assign_number<std::uint16_t>(at, out);
      case GgufType::int16:
        return assign_number<std::int16_t>(at, out);
      case GgufType::uint32:
        return assign_number<std::uint32_t>(at, out);
      case GgufType::int32:
        return assign_number<std::int32_t>(at, out);
      case GgufType::uint64:
        return assign_number<std::uint64_t>(at, out);
      case GgufType::int64:
        return assign_number<std::int64_t>(at, out);
      case GgufType::float32:
        return assign_number<float>(at, out);
      case GgufType::float64:
        return assign_number<double>(at, out);
      case GgufType::boolean:
        if constexpr (std::is_same_v<T, bool>) out = *at != std::byte{0};
        return std::is_same_v<T, bool>;
      default:
        return false;
    }
  }
}

/// The name of the kind of values that T is read from.
template <GgufScalar T>
std::string wanted_kind() {
  if constexpr (std::is_same_v<T, bool>) {
    return "bool";
  } else if constexpr (std::floating_point<T>) {
    return "float32 or float64";
  } else if constexpr (std::integral<T>) {
    return "an integer that fits " + std::to_string(8 * sizeof(T)) + (std::is_signed_v<T> ? " bits" : " unsigned bits");
  } else {
    return "string";
  }
}

/// Type and, for integers, value of the first of `bytes`, for messages.
inline std::string described(GgufType type, std::span<const std::byte> bytes) {
  std::string text(name_of(type));
  std::int64_t number = 0;
  std::uint64_t large = 0;
  if (std::span<const std::byte> rest = bytes; take_value(type, rest, number))
    return text + " " + std::to_string(number);
  if (std::span<const std::byte> rest = bytes; take_value(type, rest, large)) return text + " " + std::to_string(large);
  return text;
}

}  // namespace detail

/// What an entry can be read as: a GgufScalar, or a std::vector of one for an array.
template <class T>
concept GgufValue = GgufScalar<typename detail::GgufElement<T>::type>;

/// The entry's value as T. string_views point into the map: an array of 50,000 of them costs one vector.
/// Throws Error when the entry is of another kind or a value does not fit T.
template <GgufValue T>
T value_of(const GgufEntry& entry) {
  using Element = typename detail::GgufElement<T>::type;
  constexpr bool wants_array = detail::GgufElement<T>::is_array;
  const auto refuse = [&](const std::string& got) {
    throw Error("read_gguf", "metadata " + quote_name(entry.key),
                (wants_array ? "an array of " : "") + detail::wanted_kind<Element>(), got);
  };
  if (entry.is_array && !wants_array) refuse("an array of " + std::string(name_of(entry.type)));
  if (!entry.is_array && wants_array) refuse(detail::described(entry.type, entry.bytes));
  std::span<const std::byte> rest = entry.bytes;
  if constexpr (wants_array) {
    T values;
    values.reserve(static_cast<std::size_t>(entry.count));  // at most one per byte of the file
    for (std::uint64_t i = 0; i < entry.count; ++i) {
      const std::span<const std::byte> here = rest;
      Element element{};
      if (!detail::take_value(entry.type, rest, element))
        refuse(detail::described(entry.type, here) + " at index " + std::to_string(i));
      values.push_back(std::move(element));
    }
    return values;
  } else {
    T value{};
    if (!detail::take_value(entry.type, rest, value)) refuse(detail::described(entry.type, entry.bytes));
    return value;
  }
}

}  // namespace typeformer
