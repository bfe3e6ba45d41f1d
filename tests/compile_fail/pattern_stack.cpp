// expect: a layer pattern must change only what a layer owns: embedding, position table, head, d_model, vocabulary,
// layer count and cross-attention belong to the stack. Remove what changes them from the pattern.
#include "typeformer/policy/composition.hpp"

namespace tf = typeformer;

#ifdef WRONG
constexpr tf::LocalLayers<tf::NoPosition{}, tf::EmbeddingScale{2.f}> pattern{};
#else
constexpr tf::LocalLayers<tf::NoPosition{}, tf::MQA(6)> pattern{};
#endif

using Model =
    tf::Transformer<tf::Dims{.vocab = 101, .d_model = 48, .n_layers = 3, .d_ff = 96, .max_seq = 64}, tf::RMSNorm{},
                    tf::SwiGLU{}, tf::RoPE{}, tf::GQA{.heads = 6, .kv_heads = 2}, tf::PreNorm{}, pattern>;
Model model;
