/// The Gemma 3 family: five layers with a window, then a full one; two RoPE bases; norms before and after each
/// sublayer, and on query and key, their weights stored as w of 1 + w; embeddings times sqrt(d_model); tied head. Gemma
/// Team 2025, arXiv:2503.19786. HuggingFace: Gemma3ForCausalLM (model_type gemma3_text).
#pragma once
#include "typeformer/model/parameters.hpp"

namespace typeformer::inline TYPEFORMER_ABI {

/// x / rms(x) * (1 + w): every norm of a Gemma.
inline constexpr RMSNorm gemma_norm{.eps = 1e-6f, .gain = Gain::one_plus};

/// Gemma 3, 270M. scale = 256^-1/2 is 1 / sqrt(head_dim).
using Gemma3_270M =
    Transformer<Dims{.vocab = 262144, .d_model = 640, .n_layers = 18, .d_ff = 2048, .max_seq = 32768}, gemma_norm,
                GeGLUTanh{}, RoPE{.theta = 1e6f}, GQA{.heads = 4, .kv_heads = 1, .head_dim = 256}, DoubleNorm{},
                TiedEmbeddings{}, EmbeddingScale{}, QKNorm<gemma_norm>{},
                LocalLayers<SlidingWindow{512}, RoPE{.theta = 1e4f}>{.period = 6, .locals = 5}, Name{"Gemma-3-270M"}>;

/// Gemma 3, 1B.
using Gemma3_1B =
    Transformer<Dims{.vocab = 262144, .d_model = 1152, .n_layers = 26, .d_ff = 6912, .max_seq = 32768}, gemma_norm,
                GeGLUTanh{}, RoPE{.theta = 1e6f}, GQA{.heads = 4, .kv_heads = 1, .head_dim = 256}, DoubleNorm{},
                TiedEmbeddings{}, EmbeddingScale{}, QKNorm<gemma_norm>{},
                LocalLayers<SlidingWindow{512}, RoPE{.theta = 1e4f}>{.period = 6, .locals = 5}, Name{"Gemma-3-1B"}>;

// The published parameter counts.
static_assert(Gemma3_270M::parameter_count == 268'098'176);
static_assert(Gemma3_1B::parameter_count == 999'885'952);

}  // namespace typeformer
