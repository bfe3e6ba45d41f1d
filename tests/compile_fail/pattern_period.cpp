// expect: LocalLayers must have 0 <= locals <= period with a positive period: the first 'locals' of every 'period'
// layers are local. Change LocalLayers<...>{.period, .locals}.
#include "typeformer/policy/composition.hpp"

namespace tf = typeformer;

#ifdef WRONG
constexpr tf::LocalLayers<tf::SlidingWindow{8}> pattern{.period = 2, .locals = 3};
#else
constexpr tf::LocalLayers<tf::SlidingWindow{8}> pattern{.period = 3, .locals = 3};
#endif

using Model =
    tf::Transformer<tf::Dims{.vocab = 101, .d_model = 48, .n_layers = 3, .d_ff = 96, .max_seq = 64}, tf::RMSNorm{},
                    tf::SwiGLU{}, tf::RoPE{}, tf::GQA{.heads = 6, .kv_heads = 2}, tf::PreNorm{}, pattern>;
Model model;
