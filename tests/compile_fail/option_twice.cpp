// expect: each option must be given once: two of one kind contradict each other. Remove one of them, or use with<...>
// to replace it.
#include "typeformer/policy/composition.hpp"

namespace tf = typeformer;

#ifdef WRONG
constexpr tf::Bidirectional second{};
#else
constexpr tf::TiedEmbeddings second{};
#endif

using Model = tf::Transformer<tf::Dims{.vocab = 101, .d_model = 48, .n_layers = 3, .d_ff = 96, .max_seq = 64},
                              tf::RMSNorm{}, tf::SwiGLU{}, tf::RoPE{}, tf::GQA{.heads = 6, .kv_heads = 2},
                              tf::PreNorm{}, tf::SlidingWindow{8}, second>;
Model model;
