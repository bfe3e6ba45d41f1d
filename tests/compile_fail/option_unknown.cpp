// expect: arguments after the sixth must be options such as TiedEmbeddings{}, SlidingWindow{512} or Name{"..."}:
// anything else has no meaning there. Remove it, or give it the members of an option in policy/options.hpp
// (with<> puts here what lacks a member of its slot's policy).
#include "typeformer/policy/composition.hpp"

namespace tf = typeformer;

#ifdef WRONG
constexpr int option = 512;
#else
constexpr tf::SlidingWindow option{512};
#endif

using Model = tf::Transformer<tf::Dims{.vocab = 101, .d_model = 48, .n_layers = 3, .d_ff = 96, .max_seq = 64},
                              tf::RMSNorm{}, tf::SwiGLU{}, tf::RoPE{}, tf::GQA{.heads = 6, .kv_heads = 2},
                              tf::PreNorm{}, option, tf::Name{"tiny"}>;
Model model;
