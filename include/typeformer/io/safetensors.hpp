/// safetensors: single files, folders with shards, and a writer. Every field is checked against the file before use.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "typeformer/core/annotate.hpp"
#include "typeformer/core/error.hpp"
#include "typeformer/io/dequantize.hpp"
#include "typeformer/io/mapped_file.hpp"
#include "typeformer/io/quote_name.hpp"
#include "typeformer/io/safetensors_header.hpp"
#include "typeformer/io/safetensors_write.hpp"
#include "typeformer/io/stored_tensor.hpp"

namespace typeformer::inline TYPEFORMER_ABI::io {

/// One safetensors file, mapped. Opening reads the header alone and allocates in proportion to it.
/// Move only; views and references from it stay valid when it is moved and end with it.
/// Format: github.com/huggingface/safetensors, README. Stricter than that package: a duplicate name, an unknown field
/// of a tensor, a null for __metadata__ and a header that does not begin with '{' are refused.
class SafetensorsFile {
 public:
  /// Throws Error for a file that is truncated or lies: header length, JSON, types, shapes, offsets, overlaps, gaps.
  explicit SafetensorsFile(const std::filesystem::path& path) : file_(path) {
    detail::SafetensorsHeader header(path);
    const std::size_t data_begin = read(header);
    tensors_ = std::move(header.tensors);
    metadata_ = std::move(header.metadata);
    index_names();
    place_tensors(header.offsets, file_.bytes().subspan(data_begin));
  }

  /// All tensors in the header's order.
  std::span<const StoredTensor> tensors() const noexcept { return tensors_; }
  /// The tensor of that name, or null.
  const StoredTensor* find(std::string_view name) const noexcept {
    const auto at = tensor_index_.find(name);
    return at ? &tensors_[*at] : nullptr;
  }
  /// Key and text of every entry of __metadata__, in the header's order.
  std::span<const std::pair<std::string, std::string>> metadata() const noexcept { return metadata_; }
  const MappedFile& file() const noexcept { return file_; }

 private:
  /// Returns where the data begins.
  std::size_t read(detail::SafetensorsHeader& header) const {
    constexpr std::size_t prefix = sizeof(std::uint64_t);
    const std::span<const std::byte> bytes = file_.bytes();
    if (bytes.size() < prefix) refuse("header length", "8 bytes", std::to_string(bytes.size()));
    const auto length = load_unaligned<std::uint64_t>(bytes.data());
    if (length > longest_safetensors_header)
      refuse("header length", "at most " + std::to_string(longest_safetensors_header), std::to_string(length));
    if (length > bytes.size() - prefix)
      refuse("header length", "within the " + std::to_string(bytes.size() - prefix) + " bytes that follow",
             std::to_string(length));
    const auto text = bytes.subspan(prefix, static_cast<std::size_t>(length));
    if (text.empty() || text[0] != std::byte{'{'})
      refuse("header", "an opening brace first", text.empty() ? "nothing" : "another byte");
    header.read(text);
    return prefix + text.size();
  }

  void index_names() {
    tensor_index_ = NameIndex(tensors_, [](const StoredTensor& tensor) { return std::string_view(tensor.name); });
    if (const auto twice = tensor_index_.duplicate())
      refuse("tensor " + quote_name(*twice), "one of that name", "several");
    const NameIndex keys(metadata_, [](const auto& entry) { return std::string_view(entry.first); });
    if (const auto twice = keys.duplicate()) refuse("__metadata__ " + quote_name(*twice), "one entry", "several");
  }

  /// The tensors must tile `data`: no gap, no overlap, no rest.
  void place_tensors(const std::vector<std::pair<std::uint64_t, std::uint64_t>>& offsets,
                     std::span<const std::byte> data) {
    std::vector<std::size_t> order(tensors_.size());
    for (std::size_t i = 0; i < order.size(); ++i) {
      order[i] = i;
      const auto [begin, end] = offsets[i];
      StoredTensor& tensor = tensors_[i];
      const std::uint64_t size = size_in_file(tensor);
      if (begin > end || end > data.size())
        refuse_tensor(tensor, "data_offsets", "a range within " + std::to_string(data.size()) + " bytes of data",
                      described(offsets[i]));
      if (end - begin != size)
        refuse_tensor(tensor, "data_offsets", std::to_string(size) + " bytes for its shape and dtype",
                      described(offsets[i]));
      tensor.bytes = data.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(size));
    }
    std::sort(order.begin(), order.end(),
              [&](std::size_t left, std::size_t right) { return offsets[left] < offsets[right]; });
    std::uint64_t covered = 0;
    for (const std::size_t i : order) {
      if (offsets[i].first != covered)
        refuse_tensor(tensors_[i], "data_offsets",
                      "a range from " + std::to_string(covered) + " on, where the one before ends",
                      described(offsets[i]));
      covered = offsets[i].second;
    }
    if (covered != data.size())
      refuse("data", std::to_string(covered) + " bytes, the end of the last tensor", std::to_string(data.size()));
  }

  std::uint64_t size_in_file(const StoredTensor& tensor) const {
    std::optional<std::uint64_t> elements = 1;
    for (const std::uint64_t length : tensor.shape) {
      elements = checked_product(*elements, length);
      if (!elements) refuse_tensor(tensor, "shape", "a product within 64 bits", "more");
    }
    if (*elements % tensor.format->elements != 0)
      refuse_tensor(tensor, "shape", "whole bytes of " + std::string(tensor.format->name),
                    std::to_string(*elements) + " numbers");
    const auto size = checked_product(*elements / tensor.format->elements, tensor.format->bytes);
    if (!size) refuse_tensor(tensor, "shape", "a size within 64 bits", "more");
    return *size;
  }

  static std::string described(const std::pair<std::uint64_t, std::uint64_t>& range) {
    return "[" + std::to_string(range.first) + ", " + std::to_string(range.second) + "]";
  }
  [[noreturn]] void refuse(std::string_view field, std::string_view expected, std::string_view got) const {
    throw Error("read_safetensors", quote_name(file_.path().native()).append(": ").append(field), expected, got);
  }
  [[noreturn]] void refuse_tensor(const StoredTensor& tensor, const std::string& field, std::string_view expected,
                                  std::string_view got) const {
    refuse(field + " of tensor " + quote_name(tensor.name), expected, got);
  }

  MappedFile file_;
  std::vector<StoredTensor> tensors_;
  std::vector<std::pair<std::string, std::string>> metadata_;
  NameIndex tensor_index_;
};

/// The safetensors files of a HuggingFace folder: model.safetensors, or else the shards that
/// model.safetensors.index.json names. Other files of the folder are not looked at.
class SafetensorsFolder {
 public:
  /// Throws Error when neither is there, when a shard is missing or not a plain file name, and when index and shards
  /// disagree on any tensor.
  explicit SafetensorsFolder(const std::filesystem::path& folder) {
    const std::filesystem::path whole = folder / "model.safetensors", index = folder / "model.safetensors.index.json";
    std::error_code error;
    if (!std::filesystem::is_directory(folder, error))
      throw Error("read_safetensors", quote_name(folder.native()), "a folder",
                  error ? error.message() : "something else");
    if (std::filesystem::exists(whole, error)) {
      files_.emplace_back(whole);
    } else if (std::filesystem::exists(index, error)) {
      read_shards(folder, index);
    } else {
      throw Error("read_safetensors", quote_name(folder.native()),
                  "model.safetensors or model.safetensors.index.json in the folder", "neither");
    }
  }

  /// The one file, or the shards in the order in which the index first names them. No tensor occurs in two of them.
  std::span<const SafetensorsFile> files() const& noexcept { return files_; }
  std::vector<SafetensorsFile> files() && noexcept { return std::move(files_); }
  /// The tensor of that name, or null.
  const StoredTensor* find(std::string_view name) const noexcept {
    for (const SafetensorsFile& file : files_)
      if (const StoredTensor* const tensor = file.find(name)) return tensor;
    return nullptr;
  }

 private:
  void read_shards(const std::filesystem::path& folder, const std::filesystem::path& path) {
    const MappedFile text(path);
    if (text.bytes().size() > longest_safetensors_header)
      refuse(path, "index", "at most " + std::to_string(longest_safetensors_header) + " bytes",
             std::to_string(text.bytes().size()));
    detail::SafetensorsIndex index(path);
    index.read(text.bytes());
    if (!index.has_weight_map) refuse(path, "weight_map", "an object", "nothing");
    const NameIndex by_tensor(index.weight_map, [](const auto& entry) { return std::string_view(entry.first); });
    if (const auto twice = by_tensor.duplicate()) refuse(path, "tensor " + quote_name(*twice), "one entry", "several");
    std::vector<std::string> shards;  // in the order of files_
    for (const auto& [tensor, shard] : index.weight_map) {
      if (std::find(shards.begin(), shards.end(), shard) != shards.end()) continue;
      open_shard(folder, path, tensor, shard);
      shards.push_back(shard);
    }
    compare(path, index, by_tensor, shards);
  }

  void open_shard(const std::filesystem::path& folder, const std::filesystem::path& index, const std::string& tensor,
                  const std::string& shard) {
    const bool is_plain = !shard.empty() && shard != "." && shard != ".." &&
                          shard.find_first_of(std::string_view("/\\\0", 3)) == std::string::npos;
    if (!is_plain)
      refuse(index, "file of tensor " + quote_name(tensor), "the name of a file in the same folder", quote_name(shard));
    std::error_code error;
    if (!std::filesystem::exists(folder / shard, error))
      refuse(index, "shard " + quote_name(shard), "a file in the same folder", "none");
    files_.emplace_back(folder / shard);
  }

  /// Every entry of the index lies in its shard, and every tensor of a shard is in the index with that shard.
  void compare(const std::filesystem::path& path, const detail::SafetensorsIndex& index, const NameIndex& by_tensor,
               const std::vector<std::string>& shards) const {
    std::size_t found = 0;
    for (std::size_t i = 0; i < shards.size(); ++i) {
      for (const StoredTensor& tensor : files_[i].tensors()) {
        const auto at = by_tensor.find(tensor.name);
        if (!at || index.weight_map[*at].second != shards[i])
          refuse(path, "tensor " + quote_name(tensor.name),
                 "an entry with shard " + quote_name(shards[i]) + ", where it lies",
                 at ? quote_name(index.weight_map[*at].second) : "none");
        ++found;
      }
    }
    if (found == index.weight_map.size()) return;
    for (const auto& [tensor, shard] : index.weight_map)
      if (find(tensor) == nullptr)
        refuse(path, "tensor " + quote_name(tensor), "in shard " + quote_name(shard), "no such tensor there");
  }

  [[noreturn]] static void refuse(const std::filesystem::path& path, std::string_view field, std::string_view expected,
                                  std::string_view got) {
    throw Error("read_safetensors", quote_name(path.native()).append(": ").append(field), expected, got);
  }

  std::vector<SafetensorsFile> files_;
};

}  // namespace typeformer
