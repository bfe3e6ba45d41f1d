/// read_architecture: what a checkpoint says about its network.
#pragma once
#include <filesystem>

#include "typeformer/core/annotate.hpp"
#include "typeformer/io/file_architecture.hpp"

namespace typeformer::inline TYPEFORMER_ABI::io {

/// What the checkpoint at `path` (see load) says about its network. Throws Error for a model without a reader, a value
/// that no composition has, and a field that no reader understands.
TYPEFORMER_INLINE FileArchitecture read_architecture(const std::filesystem::path& path);

}  // namespace typeformer

#if !defined(TYPEFORMER_SEPARATE_COMPILATION)
#include "typeformer/io/read_architecture_impl.hpp"
#endif
