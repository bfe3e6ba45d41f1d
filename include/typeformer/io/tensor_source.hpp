/// The tensors of a model, whatever files they come from: one interface for the loader.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

#include "typeformer/core/annotate.hpp"
#include "typeformer/core/error.hpp"
#include "typeformer/core/scalar.hpp"
#include "typeformer/io/gguf.hpp"
#include "typeformer/io/mapped_file.hpp"
#include "typeformer/io/quote_name.hpp"
#include "typeformer/io/safetensors.hpp"
#include "typeformer/io/stored_tensor.hpp"

namespace typeformer::inline TYPEFORMER_ABI::io {

/// One tensor of a TensorSource: a small value, valid as long as the source or what it was moved to.
class SourceTensor {
 public:
  SourceTensor(const StoredTensor& stored, const MappedFile& file) : stored_(&stored), file_(&file) {}

  /// The file's own name, e.g. model.layers.0.mlp.up_proj.weight or blk.0.ffn_up.weight.
  std::string_view name() const noexcept { return stored_->name; }
  /// Row-major, the slowest dimension first, for both containers; empty for a scalar.
  std::span<const std::uint64_t> shape() const noexcept { return stored_->shape; }
  /// How the numbers are stored: F32, BF16, Q4_1, ...
  std::string_view type_name() const noexcept { return stored_->format->name; }
  /// Whether read can convert them.
  bool is_readable() const noexcept { return stored_->format->decode != nullptr; }
  std::uint64_t elements() const noexcept { return stored_->elements(); }
  const StoredTensor& stored() const noexcept { return *stored_; }

  /// out[0 .. count) = elements first .. first + count in row-major order, de-quantized and rounded to T. Any range;
  /// needs no memory in proportion to it. Throws Error when the range leaves the tensor, the type is not readable, or
  /// the file has changed its size.
  template <Storage T>
  void read(std::uint64_t first, std::uint64_t count, T* out) const {
    file_->check_unchanged();
    if constexpr (std::is_same_v<T, float>) {
      io::read_floats(*stored_, first, count, out);
    } else {
      constexpr std::uint64_t most_at_once = 1024;
      float numbers[most_at_once];
      while (count != 0) {
        const std::uint64_t part = std::min(count, most_at_once);
        io::read_floats(*stored_, first, part, numbers);
        out = std::transform(numbers, numbers + part, out, [](float number) { return from_float<T>(number); });
        first += part;
        count -= part;
      }
    }
  }
  /// read as float.
  void read_floats(std::uint64_t first, std::uint64_t count, float* out) const { read(first, count, out); }

  /// Lets the kernel take back the pages of this tensor; reading it again is allowed.
  void release() const noexcept { file_->release(stored_->bytes); }

 private:
  const StoredTensor* stored_;
  const MappedFile* file_;
};

/// All tensors of a model: a HuggingFace folder (model.safetensors or shards), one .safetensors file, or one .gguf
/// file. Move only.
class TensorSource {
 public:
  /// Throws Error for anything else, for what the containers refuse, and for one part of a split GGUF.
  explicit TensorSource(const std::filesystem::path& path) {
    std::error_code error;
    if (std::filesystem::is_directory(path, error)) {
      safetensors_ = SafetensorsFolder(path).files();
    } else if (path.extension() == ".safetensors") {
      safetensors_.emplace_back(path);
    } else if (path.extension() == ".gguf") {
      gguf_ = std::make_unique<GgufFile>(path);
      require_whole_gguf();
    } else {
      const MappedFile probe(path);  // says so when there is no such file
      throw Error("open_tensors", quote_name(path.native()), "a folder, a .safetensors file or a .gguf file",
                  "another name");
    }
    list_tensors();
  }

  /// All tensors in the files' order.
  std::span<const SourceTensor> tensors() const noexcept { return tensors_; }
  /// The tensor of that name, or null.
  const SourceTensor* find(std::string_view name) const noexcept {
    const auto at = index_.find(name);
    return at ? &tensors_[*at] : nullptr;
  }
  /// The GGUF file with its metadata; null when the tensors come from safetensors.
  const GgufFile* gguf() const noexcept { return gguf_.get(); }

 private:
  void require_whole_gguf() const {
    const auto parts = gguf_->find<std::uint64_t>("split.count");
    if (parts && *parts > 1)
      throw Error("open_tensors", quote_name(gguf_->file().path().native()), "a whole model: join the parts first",
                  "one of " + std::to_string(*parts) + " parts (split.count)");
  }

  void list_tensors() {
    if (gguf_)
      for (const StoredTensor& tensor : gguf_->tensors()) tensors_.emplace_back(tensor, gguf_->file());
    for (const SafetensorsFile& file : safetensors_)
      for (const StoredTensor& tensor : file.tensors()) tensors_.emplace_back(tensor, file.file());
    index_ = NameIndex(tensors_, [](const SourceTensor& tensor) { return tensor.name(); });
  }

  std::unique_ptr<GgufFile> gguf_;  // its address must outlive a move of this object
  std::vector<SafetensorsFile> safetensors_;
  std::vector<SourceTensor> tensors_;
  NameIndex index_;
};

}  // namespace typeformer
