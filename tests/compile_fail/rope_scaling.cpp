// expect: RopeScaling must have a positive factor, a positive original_context, low below high and beta_slow below
// beta_fast: frequencies are divided by the factor, with a ramp between the two. Change RoPE{.scaling}.
#include "typeformer/policy/composition.hpp"

namespace tf = typeformer;

#ifdef WRONG
constexpr tf::RopeScaling scaling{.kind = tf::RopeScaling::Kind::llama3, .factor = 8.f, .low = 4.f, .high = 4.f};
#else
constexpr tf::RopeScaling scaling{.kind = tf::RopeScaling::Kind::llama3, .factor = 8.f, .low = 1.f, .high = 4.f};
#endif

using Model =
    tf::Transformer<tf::Dims{.vocab = 101, .d_model = 48, .n_layers = 3, .d_ff = 96, .max_seq = 64}, tf::RMSNorm{},
                    tf::SwiGLU{}, tf::RoPE{.scaling = scaling}, tf::GQA{.heads = 6, .kv_heads = 2}, tf::PreNorm{}>;
Model model;
