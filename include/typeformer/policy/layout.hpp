/// Slot 6 of a Transformer: where the norms and the residual additions of a block stand.
#pragma once
#include <concepts>

#include "typeformer/core/annotate.hpp"

namespace typeformer::inline TYPEFORMER_ABI {

/// x = x + f(N(x)). Xiong et al. 2020, arXiv:2002.04745.
struct PreNorm {
  static constexpr bool norm_input = true, norm_output = false, norm_sum = false, parallel = false, final_norm = true;
};
/// x = N(x + f(x)); no final norm. Vaswani et al. 2017, section 3.1.
struct PostNorm {
  static constexpr bool norm_input = false, norm_output = false, norm_sum = true, parallel = false, final_norm = false;
};
/// x = x + N'(f(N(x))) (Gemma 2 and 3, Grok).
struct DoubleNorm {
  static constexpr bool norm_input = true, norm_output = true, norm_sum = false, parallel = false, final_norm = true;
};
/// x = x + N(f(x)) (OLMo 2).
struct OutputNorm {
  static constexpr bool norm_input = false, norm_output = true, norm_sum = false, parallel = false, final_norm = true;
};
/// x = x + attention(N(x)) + feed_forward(N'(x)); N' = N with `shared_norm` (GPT-J, PaLM, Cohere), its own without
/// (NeoX).
struct Parallel {
  bool shared_norm = true;
  static constexpr bool norm_input = true, norm_output = false, norm_sum = false, parallel = true, final_norm = true;
};

/// What a block layout must give. In a block f is attention, then (in a decoder that reads an encoder) cross-attention,
/// then the feed-forward network.
template <class P>
concept BlockLayout = requires {
  { P::norm_input } -> std::convertible_to<bool>;   // N on the input of f
  { P::norm_output } -> std::convertible_to<bool>;  // N on the output of f, before it is added
  { P::norm_sum } -> std::convertible_to<bool>;     // N on the sum
  { P::parallel } -> std::convertible_to<bool>;     // attention and feed-forward read the same x
  { P::final_norm } -> std::convertible_to<bool>;   // N after the last block
};

/// True when attention and feed-forward read one and the same normalized input.
template <auto Layout>
constexpr bool shares_norm() {
  if constexpr (requires { Layout.shared_norm; })
    return Layout.shared_norm;
  else
    return false;
}

}  // namespace typeformer
