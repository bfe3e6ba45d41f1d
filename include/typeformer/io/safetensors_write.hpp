/// Writing safetensors files.
#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "typeformer/core/annotate.hpp"

namespace typeformer::inline TYPEFORMER_ABI::io {

/// The longest header that this library and HuggingFace's package read, in bytes.
inline constexpr std::size_t longest_safetensors_header = 100'000'000;

/// One tensor to write. The bytes are the caller's and little-endian, row-major, as many as shape and dtype say.
struct TensorToWrite {
  std::string name;
  /// A dtype of the safetensors format: "F32", "BF16", "I64", ...
  std::string dtype;
  std::vector<std::uint64_t> shape;
  std::span<const std::byte> bytes;
};

/// Writes `tensors` in their order, with `metadata` (UTF-8 text), to `path`. The file appears complete or not at all;
/// one that was there before is replaced only by a complete one. The data of each tensor follows the one before without
/// a gap. Throws Error for duplicate names, wrong sizes, text that is not UTF-8, a header over 100 MB, and when the
/// system refuses.
TYPEFORMER_INLINE void write_safetensors(const std::filesystem::path& path, std::span<const TensorToWrite> tensors,
                                         const std::map<std::string, std::string>& metadata = {});

}  // namespace typeformer

#if !defined(TYPEFORMER_SEPARATE_COMPILATION)
#include "typeformer/io/safetensors_write_impl.hpp"
#endif
