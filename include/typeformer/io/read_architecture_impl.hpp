/// Bodies of read_architecture.hpp.
#pragma once
#include <filesystem>
#include <string_view>

#include "typeformer/core/annotate.hpp"
#include "typeformer/io/config_gguf.hpp"
#include "typeformer/io/config_hf.hpp"
#include "typeformer/io/json_document.hpp"
#include "typeformer/io/mapped_file.hpp"
#include "typeformer/io/quote_name.hpp"
#include "typeformer/io/read_architecture.hpp"
#include "typeformer/io/tensor_source.hpp"

namespace typeformer::inline TYPEFORMER_ABI::io {

/// The same for a checkpoint whose tensors are open.
inline FileArchitecture read_architecture(const std::filesystem::path& path, const TensorSource& source) {
  if (source.gguf()) return read_gguf_config(*source.gguf());
  const auto folder = std::filesystem::is_directory(path) ? path : path.parent_path();
  const MappedFile file(folder / "config.json");
  const std::string_view text(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
  const auto json = parse_json(text, "load", quote_name(file.path().native()));
  return read_hf_config(json, source.find("lm_head.weight") != nullptr);
}

TYPEFORMER_INLINE FileArchitecture read_architecture(const std::filesystem::path& path) {
  return read_architecture(path, TensorSource(path));
}

}  // namespace typeformer
