/// The T5 family: encoder and decoder, pre-norm RMSNorm, a trained score bias per stack, scores not scaled, no biases
/// on linear maps. Raffel et al. 2019, arXiv:1910.10683. HuggingFace: T5ForConditionalGeneration.
#pragma once
#include "typeformer/model/parameters.hpp"

namespace typeformer::inline TYPEFORMER_ABI {

/// T5 v1.0 (t5-small): ReLU; one table for both inputs and the head, whose logits are multiplied by d_model^-1/2.
using T5_small = EncoderDecoder<
    Transformer<Dims{.vocab = 32128, .d_model = 512, .n_layers = 6, .d_ff = 2048, .max_seq = 512},
                RMSNorm{.eps = 1e-6f}, ReLU{}, T5Buckets{.bidirectional = true},
                GQA{.heads = 8, .kv_heads = 8, .head_dim = 64, .scale = 1.f}, PreNorm{}, Bidirectional{}>,
    Transformer<Dims{.vocab = 32128, .d_model = 512, .n_layers = 6, .d_ff = 2048, .max_seq = 512},
                RMSNorm{.eps = 1e-6f}, ReLU{}, T5Buckets{},
                GQA{.heads = 8, .kv_heads = 8, .head_dim = 64, .scale = 1.f}, PreNorm{}, TiedEmbeddings{}, LogitScale{},
                Name{"T5-small"}>>;

/// T5 v1.1 (google/t5-v1_1-small): gated tanh-GELU (Shazeer 2020, arXiv:2002.05202), own head without a factor.
using T5_v1_1_small = EncoderDecoder<
    Transformer<Dims{.vocab = 32128, .d_model = 512, .n_layers = 8, .d_ff = 1024, .max_seq = 512},
                RMSNorm{.eps = 1e-6f}, GeGLUTanh{}, T5Buckets{.bidirectional = true},
                GQA{.heads = 6, .kv_heads = 6, .head_dim = 64, .scale = 1.f}, PreNorm{}, Bidirectional{}>,
    Transformer<Dims{.vocab = 32128, .d_model = 512, .n_layers = 8, .d_ff = 1024, .max_seq = 512},
                RMSNorm{.eps = 1e-6f}, GeGLUTanh{}, T5Buckets{},
                GQA{.heads = 6, .kv_heads = 6, .head_dim = 64, .scale = 1.f}, PreNorm{}, Name{"T5-v1.1-small"}>>;

// The published parameter counts.
static_assert(T5_small::parameter_count == 60'506'624);
static_assert(T5_v1_1_small::parameter_count == 76'961'152);

}  // namespace typeformer
