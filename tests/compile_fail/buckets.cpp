// expect: T5Buckets must have two buckets or more per direction, as many for each, and a max_distance beyond the exact
// ones, up to 2^20: half of a direction's buckets hold one distance each. Change T5Buckets{.buckets, .max_distance}.
#include "typeformer/policy/composition.hpp"

namespace tf = typeformer;

#ifdef WRONG
constexpr tf::T5Buckets position{.buckets = 9, .max_distance = 20, .bidirectional = true};
#else
constexpr tf::T5Buckets position{.buckets = 10, .max_distance = 3, .bidirectional = true};
#endif

using Model =
    tf::Transformer<tf::Dims{.vocab = 101, .d_model = 48, .n_layers = 3, .d_ff = 96, .max_seq = 64}, tf::RMSNorm{},
                    tf::SwiGLU{}, position, tf::GQA{.heads = 6, .kv_heads = 2}, tf::PreNorm{}, tf::Bidirectional{}>;
Model model;
