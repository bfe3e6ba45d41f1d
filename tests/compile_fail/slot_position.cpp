// expect: argument 4 must be a position policy such as RoPE{} or ALiBi{}: the order of tokens has to come from
// somewhere. Your own needs acts_on; NoPosition{} is one too.
#include "typeformer/policy/composition.hpp"

namespace tf = typeformer;

#ifdef WRONG
constexpr tf::SlidingWindow position{8};
#else
constexpr tf::NoPosition position{};
#endif

using Model = tf::Transformer<tf::Dims{.vocab = 101, .d_model = 48, .n_layers = 3, .d_ff = 96, .max_seq = 64},
                              tf::RMSNorm{}, tf::SwiGLU{}, position, tf::GQA{.heads = 6, .kv_heads = 2}, tf::PreNorm{}>;
Model model;
