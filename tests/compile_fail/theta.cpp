// expect: RoPE's theta must be above 1: pair i turns by theta^(-2i/r) per position, slower with each pair. Change
// RoPE{.theta}, usually 1e4f to 1e6f.
#include "typeformer/policy/composition.hpp"

namespace tf = typeformer;

#ifdef WRONG
constexpr tf::RoPE position{.theta = 1.f};
#else
constexpr tf::RoPE position{.theta = 1.5f};
#endif

using Model = tf::Transformer<tf::Dims{.vocab = 101, .d_model = 48, .n_layers = 3, .d_ff = 96, .max_seq = 64},
                              tf::RMSNorm{}, tf::SwiGLU{}, position, tf::GQA{.heads = 6, .kv_heads = 2}, tf::PreNorm{}>;
Model model;
