/// A tensor inside a mapped file, whatever the container.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "typeformer/core/annotate.hpp"
#include "typeformer/core/error.hpp"
#include "typeformer/io/dequantize.hpp"
#include "typeformer/io/quote_name.hpp"

namespace typeformer::inline TYPEFORMER_ABI::io {

/// Name, shape, number format and bytes of one tensor. The bytes belong to the file object that lists it.
struct StoredTensor {
  std::string name;
  /// Row-major, the slowest dimension first (GGUF lists them the other way round); empty for a scalar.
  std::vector<std::uint64_t> shape;
  /// Points into the tables of dequantize.hpp, never null.
  const ElementFormat* format = nullptr;
  /// Exactly elements() numbers in `format`; no alignment is promised.
  std::span<const std::byte> bytes;

  /// The product of the shape.
  std::uint64_t elements() const noexcept { return bytes.size() / format->bytes * format->elements; }
};

/// out[0 .. count) = elements first .. first + count of `tensor` in row-major order, as float: exact for all formats
/// but F64, which is rounded. Any start and length, also inside a quantized block. `out` is the caller's. Throws Error
/// when the range leaves the tensor or when the format cannot be read as float.
inline void read_floats(const StoredTensor& tensor, std::uint64_t first, std::uint64_t count, float* out) {
  constexpr std::size_t longest_block = 256;
  const ElementFormat& format = *tensor.format;
  if (format.decode == nullptr || format.elements > longest_block)
    throw Error("read_floats", quote_name(tensor.name), "a dtype that is readable as float",
                "unsupported dtype " + std::string(format.name));
  const std::uint64_t available = tensor.elements();
  if (first > available || count > available - first)
    throw Error("read_floats", quote_name(tensor.name), "a range within " + std::to_string(available) + " elements",
                std::to_string(count) + " elements from " + std::to_string(first) + " on");
  const std::byte* block = tensor.bytes.data() + first / format.elements * format.bytes;
  // Part of a block, at either end of the range: decoded aside.
  const auto copy_part = [&](std::size_t skip, std::size_t length) {
    float numbers[longest_block];
    format.decode(block, 1, numbers);
    out = std::copy_n(numbers + skip, length, out);
    block += format.bytes;
    count -= length;
  };
  if (const std::uint64_t skip = first % format.elements; skip != 0 && count != 0)
    copy_part(skip, std::min<std::uint64_t>(format.elements - skip, count));
  const std::uint64_t whole = count / format.elements;
  format.decode(block, whole, out);
  block += whole * format.bytes;
  out += whole * format.elements;
  count -= whole * format.elements;
  if (count != 0) copy_part(0, count);
}

/// Positions in a list of named things, found by name in logarithmic time. Keeps views of the names.
class NameIndex {
 public:
  NameIndex() = default;
  /// name_of(item) gives a string_view that lives as long as the index is used.
  template <class Items, class NameOf>
  NameIndex(const Items& items, NameOf name_of) {
    sorted_.reserve(items.size());
    for (std::size_t i = 0; i < items.size(); ++i) sorted_.emplace_back(name_of(items[i]), i);
    std::sort(sorted_.begin(), sorted_.end());
  }

  /// The position of the thing called `name`.
  std::optional<std::size_t> find(std::string_view name) const noexcept {
    const auto at = std::lower_bound(sorted_.begin(), sorted_.end(), name,
                                     [](const auto& entry, std::string_view wanted) { return entry.first < wanted; });
    if (at == sorted_.end() || at->first != name) return std::nullopt;
    return at->second;
  }

  /// A name that occurs more than once.
  std::optional<std::string_view> duplicate() const noexcept {
    const auto at = std::adjacent_find(sorted_.begin(), sorted_.end(),
                                       [](const auto& left, const auto& right) { return left.first == right.first; });
    if (at == sorted_.end()) return std::nullopt;
    return at->first;
  }

 private:
  std::vector<std::pair<std::string_view, std::size_t>> sorted_;
};

/// left * right, or nothing when that exceeds 64 bits.
constexpr std::optional<std::uint64_t> checked_product(std::uint64_t left, std::uint64_t right) noexcept {
  if (right != 0 && left > std::numeric_limits<std::uint64_t>::max() / right) return std::nullopt;
  return left * right;
}

}  // namespace typeformer
