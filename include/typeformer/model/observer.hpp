/// A look at what a network computes: hidden states, attention outputs, gradients, by name and layer.
#pragma once
#include <cstdint>
#include <string_view>

#include "typeformer/core/annotate.hpp"

namespace typeformer::inline TYPEFORMER_ABI {

/// One intermediate of a pass: [rows, width] floats in the device's memory, valid during the call.
struct Observed {
  std::string_view stack;  ///< "", "encoder." or "decoder."
  std::string_view
      name;  ///< "embedding", "attention_input", "attention", "hidden", "final_norm", "logits", "hidden_gradient", ...
  int layer = -1;  ///< -1: of the stack
  const float* data = nullptr;
  std::int64_t rows = 0;
  int width = 0;
};

/// Sees nothing, costs nothing: what passes take by default. An observer is called as observer(Observed).
struct NoObserver {
  void operator()(const Observed&) const {}
};

}  // namespace typeformer
