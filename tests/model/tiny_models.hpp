/// The tiny models of tests/golden as compositions: each alias says what its config.json says.
#pragma once
#include "typeformer/typeformer.hpp"

namespace tiny {
using namespace typeformer;

using Llama = Transformer<Dims{.vocab = 101, .d_model = 48, .n_layers = 3, .d_ff = 56, .max_seq = 64},
                          RMSNorm{.eps = .02f}, SwiGLU{}, RoPE{.theta = 500.f},
                          GQA{.heads = 6, .kv_heads = 2, .head_dim = 16}, PreNorm{}, Biases{}, Name{"llama"}>;

using LlamaTied = Transformer<
    Dims{.vocab = 103, .d_model = 40, .n_layers = 2, .d_ff = 52, .max_seq = 256}, RMSNorm{.eps = .006f}, SwiGLU{},
    RoPE{
        .theta = 1000.f,
        .scaling = {.kind = RopeScaling::Kind::llama3, .factor = 4.f, .low = 1.f, .high = 4.f, .original_context = 64}},
    GQA{.heads = 5, .kv_heads = 1, .head_dim = 12}, PreNorm{}, TiedEmbeddings{}, Name{"llama_tied"}>;

inline constexpr RMSNorm gemma_norm{.eps = .01f, .gain = Gain::one_plus};
using Gemma3 =
    Transformer<Dims{.vocab = 109, .d_model = 32, .n_layers = 7, .d_ff = 40, .max_seq = 64}, gemma_norm, GeGLUTanh{},
                RoPE{.theta = 3000.f, .scaling = {.kind = RopeScaling::Kind::linear, .factor = 8.f}},
                GQA{.heads = 4, .kv_heads = 2, .head_dim = 16, .scale = .20412414523193154f}, DoubleNorm{},
                TiedEmbeddings{}, EmbeddingScale{}, QKNorm<gemma_norm>{}, FinalSoftcap{5.f},
                LocalLayers<SlidingWindow{5}, RoPE{.theta = 100.f}>{.period = 6, .locals = 5}, Name{"gemma3"}>;

using T5Decoder = Transformer<Dims{.vocab = 89, .d_model = 32, .n_layers = 3, .d_ff = 56, .max_seq = 64},
                              RMSNorm{.eps = .01f}, ReLU{}, T5Buckets{.buckets = 8, .max_distance = 20},
                              GQA{.heads = 4, .kv_heads = 4, .head_dim = 12, .scale = 1.f}, PreNorm{}, TiedEmbeddings{},
                              LogitScale{}, Name{"t5"}>;
using T5Encoder =
    Transformer<Dims{.vocab = 89, .d_model = 32, .n_layers = 2, .d_ff = 56, .max_seq = 64}, RMSNorm{.eps = .01f},
                ReLU{}, T5Buckets{.buckets = 8, .max_distance = 20, .bidirectional = true},
                GQA{.heads = 4, .kv_heads = 4, .head_dim = 12, .scale = 1.f}, PreNorm{}, Bidirectional{}, NoHead{}>;
using T5 = EncoderDecoder<T5Encoder, T5Decoder>;

using T5GatedDecoder =
    Transformer<Dims{.vocab = 83, .d_model = 24, .n_layers = 2, .d_ff = 44, .max_seq = 64}, RMSNorm{.eps = .03f},
                GeGLUTanh{}, T5Buckets{.buckets = 10, .max_distance = 18},
                GQA{.heads = 5, .kv_heads = 5, .head_dim = 8, .scale = 1.f}, PreNorm{}, Name{"t5_gated"}>;
using T5GatedEncoder =
    Transformer<Dims{.vocab = 83, .d_model = 24, .n_layers = 3, .d_ff = 44, .max_seq = 64}, RMSNorm{.eps = .03f},
                GeGLUTanh{}, T5Buckets{.buckets = 10, .max_distance = 18, .bidirectional = true},
                GQA{.heads = 5, .kv_heads = 5, .head_dim = 8, .scale = 1.f}, PreNorm{}, Bidirectional{}, NoHead{}>;
using T5Gated = EncoderDecoder<T5GatedEncoder, T5GatedDecoder>;

}  // namespace tiny
