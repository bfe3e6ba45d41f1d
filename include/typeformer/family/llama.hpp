/// The Llama family: pre-norm RMSNorm, SwiGLU, RoPE in halves, grouped heads, no biases. HuggingFace: LlamaForCausalLM.
#pragma once
#include "typeformer/model/parameters.hpp"

namespace typeformer::inline TYPEFORMER_ABI {

/// Touvron et al. 2023, arXiv:2307.09288 (Llama 2), 7B: plain multi-head attention, own head.
using Llama2_7B =
    Transformer<Dims{.vocab = 32000, .d_model = 4096, .n_layers = 32, .d_ff = 11008, .max_seq = 4096},
                RMSNorm{.eps = 1e-5f}, SwiGLU{}, RoPE{.theta = 1e4f}, MHA(32), PreNorm{}, Name{"Llama-2-7B"}>;

/// Grattafiori et al. 2024, arXiv:2407.21783 (Llama 3), 8B of the first release: RoPE without scaling, own head.
using Llama3_8B = Transformer<Dims{.vocab = 128256, .d_model = 4096, .n_layers = 32, .d_ff = 14336, .max_seq = 8192},
                              RMSNorm{.eps = 1e-5f}, SwiGLU{}, RoPE{.theta = 5e5f}, GQA{.heads = 32, .kv_heads = 8},
                              PreNorm{}, Name{"Llama-3-8B"}>;

/// Llama 3.2, 1B: tied head, RoPE stretched from 8192 positions by 32. Architecture of arXiv:2407.21783.
using Llama3_2_1B = Transformer<
    Dims{.vocab = 128256, .d_model = 2048, .n_layers = 16, .d_ff = 8192, .max_seq = 131072}, RMSNorm{.eps = 1e-5f},
    SwiGLU{},
    RoPE{.theta = 5e5f,
         .scaling =
             {.kind = RopeScaling::Kind::llama3, .factor = 32.f, .low = 1.f, .high = 4.f, .original_context = 8192}},
    GQA{.heads = 32, .kv_heads = 8}, PreNorm{}, TiedEmbeddings{}, Name{"Llama-3.2-1B"}>;

/// Ben Allal et al. 2025, arXiv:2502.02737 (SmolLM2), 135M: a small Llama with tied embeddings.
using SmolLM2_135M = Transformer<Dims{.vocab = 49152, .d_model = 576, .n_layers = 30, .d_ff = 1536, .max_seq = 8192},
                                 RMSNorm{.eps = 1e-5f}, SwiGLU{}, RoPE{.theta = 1e5f}, GQA{.heads = 9, .kv_heads = 3},
                                 PreNorm{}, TiedEmbeddings{}, Name{"SmolLM2-135M"}>;

/// SmolLM2, 360M. arXiv:2502.02737.
using SmolLM2_360M = Transformer<Dims{.vocab = 49152, .d_model = 960, .n_layers = 32, .d_ff = 2560, .max_seq = 8192},
                                 RMSNorm{.eps = 1e-5f}, SwiGLU{}, RoPE{.theta = 1e5f}, GQA{.heads = 15, .kv_heads = 5},
                                 PreNorm{}, TiedEmbeddings{}, Name{"SmolLM2-360M"}>;

/// SmolLM2, 1.7B: plain multi-head attention. arXiv:2502.02737.
using SmolLM2_1_7B = Transformer<Dims{.vocab = 49152, .d_model = 2048, .n_layers = 24, .d_ff = 8192, .max_seq = 8192},
                                 RMSNorm{.eps = 1e-5f}, SwiGLU{}, RoPE{.theta = 1.3e5f}, MHA(32), PreNorm{},
                                 TiedEmbeddings{}, Name{"SmolLM2-1.7B"}>;

// The published parameter counts.
static_assert(Llama2_7B::parameter_count == 6'738'415'616);
static_assert(Llama3_8B::parameter_count == 8'030'261'248);
static_assert(Llama3_2_1B::parameter_count == 1'235'814'400);
static_assert(SmolLM2_135M::parameter_count == 134'515'008);
static_assert(SmolLM2_360M::parameter_count == 361'821'120);
static_assert(SmolLM2_1_7B::parameter_count == 1'711'376'384);

}  // namespace typeformer
