/// The architecture that a checkpoint states.
#pragma once
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

}  // namespace typeformer
