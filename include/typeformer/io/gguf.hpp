/// GGUF files, versions 2 and 3, little-endian: metadata and tensors, every field checked against the file before use.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "typeformer/core/annotate.hpp"
#include "typeformer/core/error.hpp"
#include "typeformer/io/dequantize.hpp"
#include "typeformer/io/gguf_value.hpp"
#include "typeformer/io/mapped_file.hpp"
#include "typeformer/io/quote_name.hpp"
#include "typeformer/io/stored_tensor.hpp"

namespace typeformer::inline TYPEFORMER_ABI::io {

/// A GGUF file, mapped. Opening reads the header alone and allocates in proportion to what the header really holds.
/// Move only; views and references from it stay valid when it is moved and end with it.
/// Format: github.com/ggml-org/ggml, docs/gguf.md.
class GgufFile {
 public:
  /// Throws Error for a file that is not GGUF 2 or 3, is truncated, or lies: counts, lengths, types, offsets,
  /// alignment, overlap, duplicates. Arrays of arrays are refused.
  explicit GgufFile(const std::filesystem::path& path);

  std::uint32_t version() const noexcept { return version_; }
  /// All metadata in the file's order.
  std::span<const GgufEntry> metadata() const noexcept { return entries_; }
  /// The entry of that key, or null.
  const GgufEntry* entry(std::string_view key) const noexcept {
    const auto at = entry_index_.find(key);
    return at ? &entries_[*at] : nullptr;
  }
  /// The value of `key`, or nothing when the file has no such key. T: integers, bool, float, double, std::string,
  /// std::string_view, or a std::vector of these. Throws Error when the entry is of another kind or does not fit T.
  template <GgufValue T>
  std::optional<T> find(std::string_view key) const;
  /// The value of `key`. Throws Error as find does, and when the key is missing.
  template <GgufValue T>
  T get(std::string_view key) const;

  /// All tensors in the file's order.
  std::span<const StoredTensor> tensors() const noexcept { return tensors_; }
  /// The tensor of that name, or null.
  const StoredTensor* find_tensor(std::string_view name) const noexcept {
    const auto at = tensor_index_.find(name);
    return at ? &tensors_[*at] : nullptr;
  }
  const MappedFile& file() const noexcept { return file_; }

 private:
  class Reader;
  MappedFile file_;
  std::uint32_t version_ = 0;
  std::vector<GgufEntry> entries_;
  std::vector<StoredTensor> tensors_;
  NameIndex entry_index_, tensor_index_;
};

/// Reads the header front to back. Every length is compared with the bytes that remain before it is believed.
class GgufFile::Reader {
 public:
  explicit Reader(GgufFile& result) : result_(result), bytes_(result.file_.bytes()) {}

  void read() {
    const auto [tensor_count, entry_count] = read_counts();
    read_metadata(entry_count);
    const std::vector<std::uint64_t> offsets = read_tensor_list(tensor_count);
    place_tensors(offsets, alignment());
  }

 private:
  struct Counts {
    std::uint64_t tensors, entries;
  };

  Counts read_counts() {
    if (bytes_.size() < 24) refuse("header", "at least 24 bytes", std::to_string(bytes_.size()));
    if (const auto magic = text(4); magic != "GGUF") refuse("magic", "'GGUF'", quote_name(magic));
    result_.version_ = number<std::uint32_t>("version");
    if (result_.version_ != 0 && (result_.version_ & 0xffff) == 0)
      refuse("version", "a little-endian file", "a big-endian one");
    if (result_.version_ != 2 && result_.version_ != 3) refuse("version", "2 or 3", std::to_string(result_.version_));
    const auto tensors = number<std::uint64_t>("tensor count"), entries = number<std::uint64_t>("metadata count");
    constexpr std::uint64_t least_entry = 8 + 1 + 4 + 1, least_tensor = 8 + 1 + 4 + 8 + 4 + 8;
    require_room("metadata count", entries, least_entry);
    require_room("tensor count", tensors, least_tensor);
    return {tensors, entries};
  }

  void read_metadata(std::uint64_t count) {
    constexpr std::size_t longest_key = 65535;
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::string_view key = string("metadata key " + std::to_string(i));
      if (key.empty() || key.size() > longest_key)
        refuse("metadata key " + std::to_string(i), "1 to 65535 characters", std::to_string(key.size()));
      result_.entries_.push_back(read_entry(key));
    }
    result_.entry_index_ = NameIndex(result_.entries_, [](const GgufEntry& entry) { return entry.key; });
    if (const auto twice = result_.entry_index_.duplicate())
      refuse("metadata " + quote_name(*twice), "one entry", "several");
  }

  GgufEntry read_entry(std::string_view key) {
    GgufEntry entry;
    entry.key = key;
    entry.type = read_type(key);
    if (entry.type == GgufType::array) {
      entry.is_array = true;
      entry.type = read_type(key);
      if (entry.type == GgufType::array)
        refuse("metadata " + quote_name(key), "an array of values", "an array of arrays");
      entry.count = number<std::uint64_t>("metadata count of array");
    }
    const std::string what = "metadata " + quote_name(key);
    const std::size_t begin = position_, size = size_of(entry.type);
    require_room(what, entry.count, size == 0 ? sizeof(std::uint64_t) : size);
    if (size == 0) {
      for (std::uint64_t i = 0; i < entry.count; ++i) string(what);
    } else {
      position_ += static_cast<std::size_t>(entry.count) * size;
    }
    entry.bytes = bytes_.subspan(begin, position_ - begin);
    if (entry.type == GgufType::boolean &&
        std::any_of(entry.bytes.begin(), entry.bytes.end(), [](std::byte value) { return value > std::byte{1}; }))
      refuse(what, "bool values of 0 or 1", "another byte");
    return entry;
  }

  /// The tensors' names, shapes and formats go to the result, their offsets are returned.
  std::vector<std::uint64_t> read_tensor_list(std::uint64_t count) {
    std::vector<std::uint64_t> offsets;
    for (std::uint64_t i = 0; i < count; ++i) {
      StoredTensor tensor;
      tensor.name = string("name of tensor " + std::to_string(i));
      if (tensor.name.empty() || tensor.name.size() > 64)
        refuse("name of tensor " + std::to_string(i), "1 to 64 characters", std::to_string(tensor.name.size()));
      read_shape(tensor);
      const auto type = number<std::uint32_t>("tensor type");
      tensor.format = ggml_format(type);
      if (tensor.format == nullptr) refuse_tensor(tensor, "type", "a ggml tensor type", std::to_string(type));
      offsets.push_back(number<std::uint64_t>("tensor offset"));
      result_.tensors_.push_back(std::move(tensor));
    }
    result_.tensor_index_ =
        NameIndex(result_.tensors_, [](const StoredTensor& tensor) { return std::string_view(tensor.name); });
    if (const auto twice = result_.tensor_index_.duplicate())
      refuse("tensor " + quote_name(*twice), "one of that name", "several");
    return offsets;
  }

  void read_shape(StoredTensor& tensor) {
    const auto dimensions = number<std::uint32_t>("number of dimensions");
    if (dimensions < 1 || dimensions > 4)
      refuse_tensor(tensor, "number of dimensions", "1 to 4", std::to_string(dimensions));
    tensor.shape.resize(dimensions);
    for (std::size_t i = 0; i < dimensions; ++i) {
      auto& length = tensor.shape[dimensions - 1 - i];  // the file lists the fastest first
      length = number<std::uint64_t>("dimension");
      if (length == 0) refuse_tensor(tensor, "dimension " + std::to_string(i), "at least 1", "0");
    }
  }

  std::uint64_t alignment() const {
    constexpr std::uint64_t standard = 32;
    const GgufEntry* const entry = result_.entry("general.alignment");
    if (entry == nullptr) return standard;
    if (entry->is_array || entry->type != GgufType::uint32)
      refuse("general.alignment", "uint32",
             (entry->is_array ? "an array of " : "") + std::string(name_of(entry->type)));
    const auto value = load_unaligned<std::uint32_t>(entry->bytes.data());
    if (value == 0 || value % 8 != 0) refuse("general.alignment", "a multiple of 8", std::to_string(value));
    return value;
  }

  /// Offsets count from the first multiple of `alignment` after the header. As in ggml's own reader the tensors lie one
  /// after the other, each at the next multiple; padding after the last one may be missing, anything else is refused.
  void place_tensors(const std::vector<std::uint64_t>& offsets, std::uint64_t alignment) {
    const std::uint64_t padding = (alignment - position_ % alignment) % alignment;
    const std::uint64_t room = padding < bytes_.size() - position_ ? bytes_.size() - position_ - padding : 0;
    std::vector<std::pair<std::uint64_t, std::size_t>> order;
    for (std::size_t i = 0; i < offsets.size(); ++i) {
      StoredTensor& tensor = result_.tensors_[i];
      const std::uint64_t size = size_in_file(tensor), offset = offsets[i];
      if (offset % alignment != 0)
        refuse_tensor(tensor, "offset", "a multiple of " + std::to_string(alignment), std::to_string(offset));
      if (offset > room || size > room - offset)
        refuse_tensor(tensor, "data", "within the " + std::to_string(room) + " bytes of data that the file holds",
                      std::to_string(size) + " bytes at " + std::to_string(offset));
      tensor.bytes =
          bytes_.subspan(static_cast<std::size_t>(position_ + padding + offset), static_cast<std::size_t>(size));
      order.emplace_back(offset, i);
    }
    std::sort(order.begin(), order.end());
    std::uint64_t next = 0;
    for (const auto& [offset, i] : order) {
      const StoredTensor& tensor = result_.tensors_[i];
      if (offset != next)
        refuse_tensor(tensor, "offset", std::to_string(next) + ", where the tensor before ends",
                      std::to_string(offset));
      next = (offset + tensor.bytes.size() + alignment - 1) / alignment * alignment;
    }
    if (room > next) refuse("data", std::to_string(next) + " bytes, the end of the last tensor", std::to_string(room));
  }

  std::uint64_t size_in_file(const StoredTensor& tensor) const {
    const ElementFormat& format = *tensor.format;
    if (tensor.shape.back() % format.elements != 0)
      refuse_tensor(tensor, "row",
                    "a multiple of " + std::to_string(format.elements) + " numbers (" + std::string(format.name) + ")",
                    std::to_string(tensor.shape.back()));
    std::optional<std::uint64_t> size = checked_product(tensor.shape.back() / format.elements, format.bytes);
    for (std::size_t i = 0; size && i + 1 < tensor.shape.size(); ++i) size = checked_product(*size, tensor.shape[i]);
    if (!size) refuse_tensor(tensor, "shape", "a size in 64 bits", "more");
    return *size;
  }

  GgufType read_type(std::string_view key) {
    const auto type = number<std::uint32_t>("metadata type");
    if (type > static_cast<std::uint32_t>(GgufType::float64))
      refuse("metadata " + quote_name(key), "a value type from 0 to 12", std::to_string(type));
    return static_cast<GgufType>(type);
  }

  template <class T>
  T number(std::string_view what) {
    require_room(what, 1, sizeof(T));
    const T value = load_unaligned<T>(bytes_.data() + position_);
    position_ += sizeof(T);
    return value;
  }
  std::string_view text(std::size_t length) {
    const auto* const characters = reinterpret_cast<const char*>(bytes_.data() + position_);
    position_ += length;
    return {characters, length};
  }
  std::string_view string(std::string_view what) {
    const auto length = number<std::uint64_t>(what);
    require_room(what, length, 1);
    return text(static_cast<std::size_t>(length));
  }

  void require_room(std::string_view what, std::uint64_t count, std::uint64_t size_of_one) const {
    const std::uint64_t rest = bytes_.size() - position_;
    if (count <= rest / size_of_one) return;
    refuse(what, "within the " + std::to_string(rest) + " bytes that remain at byte " + std::to_string(position_),
           size_of_one == 1 ? std::to_string(count) + " bytes"
                            : std::to_string(count) + " times " + std::to_string(size_of_one) + " bytes");
  }

  [[noreturn]] void refuse(std::string_view field, std::string_view expected, std::string_view got) const {
    throw Error("read_gguf", quote_name(result_.file_.path().native()).append(": ").append(field), expected, got);
  }
  [[noreturn]] void refuse_tensor(const StoredTensor& tensor, std::string_view field, std::string_view expected,
                                  std::string_view got) const {
    refuse(std::string(field) + " of tensor " + quote_name(tensor.name), expected, got);
  }

  GgufFile& result_;
  std::span<const std::byte> bytes_;
  std::size_t position_ = 0;
};

inline GgufFile::GgufFile(const std::filesystem::path& path) : file_(path) { Reader(*this).read(); }

template <GgufValue T>
std::optional<T> GgufFile::find(std::string_view key) const {
  const GgufEntry* const found = entry(key);
  if (found == nullptr) return std::nullopt;
  return value_of<T>(*found);
}

template <GgufValue T>
T GgufFile::get(std::string_view key) const {
  const GgufEntry* const found = entry(key);
  if (found == nullptr)
    throw Error("read_gguf", quote_name(file_.path().native()) + ": metadata " + quote_name(key), "an entry", "none");
  return value_of<T>(*found);
}

}  // namespace typeformer
