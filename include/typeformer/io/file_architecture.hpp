/// The architecture that a checkpoint states.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "typeformer/core/annotate.hpp"
#include "typeformer/report/architecture.hpp"

namespace typeformer::inline TYPEFORMER_ABI::io {

/// What a config says, and which of its keys said it.
struct FileArchitecture {
  std::string family;  ///< "llama", "gemma3" or "t5": which names the tensors have
  Architecture architecture;
  std::vector<std::string> fields_read, fields_ignored;
};

/// What the checkpoint at `path` (see load) says about its network. Throws Error for a model without a reader, a value
/// that no composition has, and a field that no reader understands.
TYPEFORMER_INLINE FileArchitecture read_architecture(const std::filesystem::path& path);

}  // namespace typeformer

#if !defined(TYPEFORMER_SEPARATE_COMPILATION)
#include "typeformer/io/file_architecture_impl.hpp"
#endif
