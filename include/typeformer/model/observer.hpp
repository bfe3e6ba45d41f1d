/// A look at what a network computes: hidden states, attention outputs, gradients, by name and layer.
#pragma once
#include <cstdint>
#include <string_view>

#include "typeformer/core/annotate.hpp"

namespace typeformer::inline TYPEFORMER_ABI {

/// One intermediate of a pass: [rows, width] numbers in the device's memory, valid during the call. T: the type of the
/// model's activations (see activation_t); logits are float. By name:
///   of the stack      "embedding" (after its scale, positions and norm), "final_norm", "logits", "embedding_gradient"
///   of every layer    "attention" [T, heads * head_dim] and "feed_forward" [T, d_ff]: what the output matrix of the
///                     branch reads (HuggingFace's modules of these names give that matrix's product, which here mostly
///                     becomes part of the residual stream in the same step), "hidden" [T, d_model] after the block
///                     (HF's hidden_states[layer + 1], but for the last layer's, which HF gives after the final norm),
///                     and downward "hidden_gradient", the gradient of "hidden"
template <class T>
struct Observed {
  std::string_view stack;  ///< "", "encoder." or "decoder."
  std::string_view name;
  int layer = -1;  ///< -1: of the stack
  const T* data = nullptr;
  std::int64_t rows = 0;
  int width = 0;
};

/// Sees nothing, costs nothing: what passes take by default. An observer is called as observer(Observed<T>), by
/// reference.
struct NoObserver {
  template <class T>
  void operator()(const Observed<T>&) const {}
};

}  // namespace typeformer
