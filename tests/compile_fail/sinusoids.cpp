// expect: d_model must be even and the base positive for Sinusoidal positions: every frequency, a power of the base,
// gives a sine and a cosine. Change Dims{.d_model}, Sinusoidal{.base} or the position policy.
#include "typeformer/policy/composition.hpp"

namespace tf = typeformer;

#ifdef WRONG
constexpr int d_model = 45;
#else
constexpr int d_model = 50;
#endif

using Model = tf::Transformer<tf::Dims{.vocab = 101, .d_model = d_model, .n_layers = 3, .d_ff = 96, .max_seq = 64},
                              tf::RMSNorm{}, tf::SwiGLU{}, tf::Sinusoidal{}, tf::MHA(5), tf::PreNorm{}>;
Model model;
