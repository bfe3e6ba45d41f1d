// expect: NoHead{} must stand without TiedEmbeddings, LogitScale, FinalSoftcap and a head bias: a stack that ends with
// hidden states has no logits. Remove NoHead{} or the option that shapes logits.
#include "typeformer/policy/composition.hpp"

namespace tf = typeformer;

#ifdef WRONG
constexpr tf::NoHead head{};
#else
constexpr tf::NoHead head{false};
#endif

using Model = tf::Transformer<tf::Dims{.vocab = 101, .d_model = 48, .n_layers = 3, .d_ff = 96, .max_seq = 64},
                              tf::RMSNorm{}, tf::SwiGLU{}, tf::RoPE{}, tf::GQA{.heads = 6, .kv_heads = 2},
                              tf::PreNorm{}, tf::TiedEmbeddings{}, head>;
Model model;
