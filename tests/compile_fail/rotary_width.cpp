// expect: RoPE must rotate an even number of channels, at most head_dim: it turns them in pairs. Change .head_dim or
// RoPE{.fraction}, or use ALiBi{}.
#include "typeformer/policy/composition.hpp"

namespace tf = typeformer;

#ifdef WRONG
constexpr tf::RoPE position{.fraction = .625f};  // 5 of 8 channels
#else
constexpr tf::RoPE position{.fraction = .75f};
#endif

using Model = tf::Transformer<tf::Dims{.vocab = 101, .d_model = 48, .n_layers = 3, .d_ff = 96, .max_seq = 64},
                              tf::RMSNorm{}, tf::SwiGLU{}, position, tf::GQA{.heads = 6, .kv_heads = 2}, tf::PreNorm{}>;
Model model;
