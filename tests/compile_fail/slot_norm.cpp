// expect: argument 2 must be a norm such as RMSNorm{} or LayerNorm{}: every block normalizes its rows. Your own needs
// centered, gain, bias, scale, normalize and normalize_backward.
#include "typeformer/policy/composition.hpp"

namespace tf = typeformer;

#ifdef WRONG
constexpr tf::GELU policy{};
#else
constexpr tf::RMSNorm policy{};
#endif

using Model = tf::Transformer<tf::Dims{.vocab = 101, .d_model = 48, .n_layers = 3, .d_ff = 96, .max_seq = 64}, policy,
                              tf::GELU{}, tf::RoPE{}, tf::GQA{.heads = 6, .kv_heads = 2}, tf::PreNorm{}>;
Model model;
