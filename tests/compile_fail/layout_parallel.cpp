// expect: a parallel block layout must have norm_input: attention and feed-forward both read the normalized input of
// the block. Set the layout's norm_input, or parallel to false.
#include "typeformer/policy/composition.hpp"

namespace tf = typeformer;

#ifdef WRONG
constexpr bool norm_input = false;
#else
constexpr bool norm_input = true;
#endif

struct Layout {
  static constexpr bool norm_output = true, norm_sum = false, parallel = true, final_norm = false;
  static constexpr bool norm_input = ::norm_input;
};
using Model = tf::Transformer<tf::Dims{.vocab = 101, .d_model = 48, .n_layers = 3, .d_ff = 96, .max_seq = 64},
                              tf::RMSNorm{}, tf::SwiGLU{}, tf::RoPE{}, tf::GQA{.heads = 6, .kv_heads = 2}, Layout{}>;
Model model;
