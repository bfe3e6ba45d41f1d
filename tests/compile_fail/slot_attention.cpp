// expect: argument 5 must be an attention policy such as GQA{.heads = 32, .kv_heads = 8} or MHA(32): heads have to be
// counted. Your own needs heads, kv_heads, head_dim, scale and softcap.
#include "typeformer/policy/composition.hpp"

namespace tf = typeformer;

#ifdef WRONG
struct Attention {
  int heads = 6, kv_heads = 2, head_dim = 8;
};
#else
struct Attention {
  int heads = 6, kv_heads = 2, head_dim = 8;
  float scale = 1.f, softcap = 0.f;
};
#endif

using Model = tf::Transformer<tf::Dims{.vocab = 101, .d_model = 48, .n_layers = 3, .d_ff = 96, .max_seq = 64},
                              tf::RMSNorm{}, tf::SwiGLU{}, tf::RoPE{}, Attention{}, tf::PreNorm{}>;
Model model;
