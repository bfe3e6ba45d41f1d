// expect: d_model must be a positive multiple of heads: each head gets d_model / heads channels. Change Dims{.d_model}
// or the attention policy's .heads, or set its .head_dim.
#include "typeformer/policy/composition.hpp"

namespace tf = typeformer;

#ifdef WRONG
constexpr tf::GQA attention = tf::MHA(5);
#else
constexpr tf::GQA attention = tf::MHA(5, 8);  // its own head_dim
#endif

using Model = tf::Transformer<tf::Dims{.vocab = 101, .d_model = 48, .n_layers = 3, .d_ff = 96, .max_seq = 64},
                              tf::RMSNorm{}, tf::SwiGLU{}, tf::RoPE{}, attention, tf::PreNorm{}>;
Model model;
