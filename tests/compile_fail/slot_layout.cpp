// expect: argument 6 must be a block layout such as PreNorm{} or PostNorm{}: norms and residuals need a place. Your own
// needs norm_input, norm_output, norm_sum, parallel and final_norm.
#include "typeformer/policy/composition.hpp"

namespace tf = typeformer;

#ifdef WRONG
struct Layout {
  static constexpr bool norm_input = true, norm_output = false, norm_sum = false, parallel = false;
};
#else
struct Layout {
  static constexpr bool norm_input = true, norm_output = false, norm_sum = false, parallel = false, final_norm = true;
};
#endif

using Model = tf::Transformer<tf::Dims{.vocab = 101, .d_model = 48, .n_layers = 3, .d_ff = 96, .max_seq = 64},
                              tf::RMSNorm{}, tf::SwiGLU{}, tf::RoPE{}, tf::GQA{.heads = 6, .kv_heads = 2}, Layout{}>;
Model model;
