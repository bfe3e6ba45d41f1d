// expect: a block layout with norm_sum must have no other norm and no parallel branches: each branch returns through
// one norm at most. Change the layout's norm_sum, norm_input, norm_output or parallel.
#include "typeformer/policy/composition.hpp"

namespace tf = typeformer;

#ifdef WRONG
constexpr bool norm_input = true;
#else
constexpr bool norm_input = false;
#endif

struct Layout {
  static constexpr bool norm_output = false, norm_sum = true, parallel = false, final_norm = false;
  static constexpr bool norm_input = ::norm_input;
};
using Model = tf::Transformer<tf::Dims{.vocab = 101, .d_model = 48, .n_layers = 3, .d_ff = 96, .max_seq = 64},
                              tf::RMSNorm{}, tf::SwiGLU{}, tf::RoPE{}, tf::GQA{.heads = 6, .kv_heads = 2}, Layout{}>;
Model model;
