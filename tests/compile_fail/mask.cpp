// expect: a window or chunk must hold at least one key: a query that sees nothing has no softmax. Change
// SlidingWindow{.window}, Chunked{.chunk}, or your mask's reach().
#include "typeformer/policy/composition.hpp"

namespace tf = typeformer;

#ifdef WRONG
constexpr tf::SlidingWindow mask{0};
#else
constexpr tf::SlidingWindow mask{1};
#endif

using Model =
    tf::Transformer<tf::Dims{.vocab = 101, .d_model = 48, .n_layers = 3, .d_ff = 96, .max_seq = 64}, tf::RMSNorm{},
                    tf::SwiGLU{}, tf::RoPE{}, tf::GQA{.heads = 6, .kv_heads = 2}, tf::PreNorm{}, mask>;
Model model;
