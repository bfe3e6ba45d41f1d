// expect: heads must be a positive multiple of kv_heads: each key/value head serves heads / kv_heads query heads.
// Change GQA{.heads, .kv_heads}.
#include "typeformer/policy/composition.hpp"

namespace tf = typeformer;

#ifdef WRONG
constexpr tf::GQA attention{.heads = 6, .kv_heads = 4};
#else
constexpr tf::GQA attention{.heads = 6, .kv_heads = 3};
#endif

using Model = tf::Transformer<tf::Dims{.vocab = 101, .d_model = 48, .n_layers = 3, .d_ff = 96, .max_seq = 64},
                              tf::RMSNorm{}, tf::SwiGLU{}, tf::RoPE{}, attention, tf::PreNorm{}>;
Model model;
