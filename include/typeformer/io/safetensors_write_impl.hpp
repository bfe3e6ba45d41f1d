/// Bodies of safetensors_write.hpp.
#pragma once
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "typeformer/core/annotate.hpp"
#include "typeformer/core/error.hpp"
#include "typeformer/io/dequantize.hpp"
#include "typeformer/io/quote_name.hpp"
#include "typeformer/io/safetensors_write.hpp"
#include "typeformer/io/stored_tensor.hpp"

namespace typeformer::inline TYPEFORMER_ABI::io {

namespace detail {

/// A file that appears under its name only when complete: written beside it, synchronized, renamed; else removed.
class FileToBe {
 public:
  explicit FileToBe(const std::filesystem::path& path) : path_(path) {
    std::error_code error;
    const auto target = std::filesystem::status(path, error).type();
    if (target != std::filesystem::file_type::not_found && target != std::filesystem::file_type::regular)
      refuse("a regular file or none yet", error ? error.message() : "something else");
    for (int attempt = 0; attempt < 1000 && descriptor_ < 0; ++attempt) {
      beside_ = path;
      beside_ += "." + std::to_string(::getpid()) + "-" + std::to_string(attempt) + ".partial";
      descriptor_ = ::open(beside_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
      if (descriptor_ < 0 && errno != EEXIST) break;
    }
    if (descriptor_ < 0) refuse("a folder that can be written to", system_message());
  }
  FileToBe(const FileToBe&) = delete;
  FileToBe& operator=(const FileToBe&) = delete;
  ~FileToBe() {
    if (descriptor_ >= 0) ::close(descriptor_);
    if (!done_) ::unlink(beside_.c_str());
  }

  void append(std::span<const std::byte> bytes) {
    constexpr std::size_t most_at_once = std::size_t{1} << 30;
    while (!bytes.empty()) {
      const ::ssize_t written = ::write(descriptor_, bytes.data(), std::min(bytes.size(), most_at_once));
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) refuse("room for all bytes", system_message());
      bytes = bytes.subspan(static_cast<std::size_t>(written));
    }
  }

  void finish() {
    if (::fsync(descriptor_) != 0) refuse("bytes that reach the disk", system_message());
    if (::close(std::exchange(descriptor_, -1)) != 0) refuse("bytes that reach the disk", system_message());
    if (::rename(beside_.c_str(), path_.c_str()) != 0) refuse("a name that can be taken", system_message());
    done_ = true;
    // The new name reaches the disk with the folder. Not all file systems can synchronize one; the file is complete
    // anyway.
    const auto folder = path_.has_parent_path() ? path_.parent_path() : std::filesystem::path(".");
    if (const int handle = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); handle >= 0) {
      ::fsync(handle);
      ::close(handle);
    }
  }

 private:
  static std::string system_message() { return std::error_code(errno, std::generic_category()).message(); }
  [[noreturn]] void refuse(std::string_view expected, std::string_view got) const {
    throw Error("write_safetensors", quote_name(path_.native()), expected, got);
  }

  std::filesystem::path path_, beside_;
  int descriptor_ = -1;
  bool done_ = false;
};

inline std::string json_string(const std::string& text) {
  try {
    return nlohmann::json(text).dump();
  } catch (const nlohmann::json::exception&) {
    throw Error("write_safetensors", quote_name(text), "UTF-8", "other bytes");
  }
}

inline void check_size(const TensorToWrite& tensor) {
  const ElementFormat* const format = safetensors_format(tensor.dtype);
  if (format == nullptr)
    throw Error("write_safetensors", "dtype of " + quote_name(tensor.name), "a dtype of the safetensors format",
                quote_name(tensor.dtype));
  std::optional<std::uint64_t> elements = 1;
  for (std::size_t i = 0; elements && i < tensor.shape.size(); ++i)
    elements = checked_product(*elements, tensor.shape[i]);
  const bool is_whole = elements && *elements % format->elements == 0;
  const auto size = is_whole ? checked_product(*elements / format->elements, format->bytes) : std::nullopt;
  if (!size || *size != tensor.bytes.size())
    throw Error("write_safetensors", "bytes of " + quote_name(tensor.name),
                size ? std::to_string(*size) + " for its shape and dtype" : "a shape of whole bytes within 64 bits",
                std::to_string(tensor.bytes.size()));
}

/// The header's text, padded so that the data begins at a multiple of 8.
inline std::string safetensors_header_text(std::span<const TensorToWrite> tensors,
                                           const std::map<std::string, std::string>& metadata) {
  std::string text(1, '{');
  const auto separate = [&text] {
    if (text.back() != '{') text.push_back(',');
  };
  if (!metadata.empty()) {
    text.append("\"__metadata__\":{");
    for (const auto& [key, value] : metadata) {
      separate();
      text.append(json_string(key)).append(1, ':').append(json_string(value));
    }
    text.push_back('}');
  }
  std::uint64_t offset = 0;
  for (const TensorToWrite& tensor : tensors) {
    separate();
    text.append(json_string(tensor.name)).append(":{\"dtype\":\"").append(tensor.dtype).append("\",\"shape\":[");
    for (std::size_t i = 0; i < tensor.shape.size(); ++i)
      text.append(i == 0 ? "" : ",").append(std::to_string(tensor.shape[i]));
    text.append("],\"data_offsets\":[").append(std::to_string(offset)).append(1, ',');
    offset += tensor.bytes.size();
    text.append(std::to_string(offset)).append("]}");
  }
  text.push_back('}');
  text.append((8 - text.size() % 8) % 8, ' ');
  return text;
}

}  // namespace detail

TYPEFORMER_INLINE void write_safetensors(const std::filesystem::path& path, std::span<const TensorToWrite> tensors,
                                         const std::map<std::string, std::string>& metadata) {
  const NameIndex names(tensors, [](const TensorToWrite& tensor) { return std::string_view(tensor.name); });
  if (const auto twice = names.duplicate())
    throw Error("write_safetensors", quote_name(*twice), "one tensor of that name", "several");
  if (names.find("__metadata__"))
    throw Error("write_safetensors", "'__metadata__'", "another name: the format reserves it", "a tensor");
  for (const TensorToWrite& tensor : tensors) detail::check_size(tensor);
  const std::string header = detail::safetensors_header_text(tensors, metadata);
  if (header.size() > longest_safetensors_header)
    throw Error("write_safetensors", "header", "at most " + std::to_string(longest_safetensors_header) + " bytes",
                std::to_string(header.size()));
  detail::FileToBe file(path);
  const std::uint64_t length = header.size();
  file.append(std::as_bytes(std::span(&length, 1)));
  file.append(std::as_bytes(std::span(header)));
  for (const TensorToWrite& tensor : tensors) file.append(tensor.bytes);
  file.finish();
}

}  // namespace typeformer
