// expect: a norm's eps must not be negative: it is added to a mean square under a root. Change .eps, usually 1e-5f or
// 1e-6f.
#include "typeformer/policy/composition.hpp"

namespace tf = typeformer;

#ifdef WRONG
constexpr float eps = -1e-6f;
#else
constexpr float eps = 0.f;
#endif

using Model = tf::Transformer<tf::Dims{.vocab = 101, .d_model = 48, .n_layers = 3, .d_ff = 96, .max_seq = 64},
                              tf::RMSNorm{}, tf::SwiGLU{}, tf::RoPE{}, tf::GQA{.heads = 6, .kv_heads = 2},
                              tf::PreNorm{}, tf::QKNorm<tf::RMSNorm{.eps = eps}>{}>;
Model model;
