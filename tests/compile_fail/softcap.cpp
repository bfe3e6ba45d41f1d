// expect: a soft-cap must not be negative: scores stay within +-cap, and 0 means no cap. Change GQA{.softcap} or
// FinalSoftcap{.final_cap}.
#include "typeformer/policy/composition.hpp"

namespace tf = typeformer;

#ifdef WRONG
constexpr tf::FinalSoftcap cap{-30.f};
#else
constexpr tf::FinalSoftcap cap{30.f};
#endif

using Model =
    tf::Transformer<tf::Dims{.vocab = 101, .d_model = 48, .n_layers = 3, .d_ff = 96, .max_seq = 64}, tf::RMSNorm{},
                    tf::SwiGLU{}, tf::RoPE{}, tf::GQA{.heads = 6, .kv_heads = 2}, tf::PreNorm{}, cap>;
Model model;
