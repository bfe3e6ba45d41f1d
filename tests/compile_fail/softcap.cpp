// expect: a soft-cap must be a finite number of 0 or more: scores stay within +-cap, and 0 means no cap. Change
// GQA{.softcap} or FinalSoftcap{.final_cap}.
#include <limits>

#include "typeformer/policy/composition.hpp"

namespace tf = typeformer;

#ifdef WRONG
constexpr tf::FinalSoftcap cap{std::numeric_limits<float>::infinity()};
#else
constexpr tf::FinalSoftcap cap{30.f};
#endif

using Model =
    tf::Transformer<tf::Dims{.vocab = 101, .d_model = 48, .n_layers = 3, .d_ff = 96, .max_seq = 64}, tf::RMSNorm{},
                    tf::SwiGLU{}, tf::RoPE{}, tf::GQA{.heads = 6, .kv_heads = 2}, tf::PreNorm{}, cap>;
Model model;
