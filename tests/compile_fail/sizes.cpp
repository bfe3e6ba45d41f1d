// expect: every size in Dims must be positive: a network needs a vocabulary, a width, layers, an inner width and
// positions. Set Dims{.vocab, .d_model, .n_layers, .d_ff, .max_seq}.
#include "typeformer/policy/composition.hpp"

namespace tf = typeformer;

#ifdef WRONG
constexpr tf::Dims dims{.vocab = 101, .d_model = 48, .n_layers = 3, .d_ff = 96};
#else
constexpr tf::Dims dims{.vocab = 101, .d_model = 48, .n_layers = 3, .d_ff = 96, .max_seq = 1};
#endif

using Model =
    tf::Transformer<dims, tf::RMSNorm{}, tf::SwiGLU{}, tf::RoPE{}, tf::GQA{.heads = 6, .kv_heads = 2}, tf::PreNorm{}>;
Model model;
