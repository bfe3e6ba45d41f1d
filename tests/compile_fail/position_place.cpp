// expect: a position policy must give what its place needs: on query_key pairs, rotary_width, frequency and amplitude;
// on score head_bias, or reach, row and table_rows; on embedding embedding, or offset and table_rows. Add the missing
// members or change acts_on.
#include "typeformer/policy/composition.hpp"

namespace tf = typeformer;

#ifdef WRONG
struct DistanceBias {
  static constexpr tf::ActsOn acts_on = tf::ActsOn::score;
};
#else
struct DistanceBias {
  static constexpr tf::ActsOn acts_on = tf::ActsOn::score;
  struct OfHead {
    float operator()(int query, int key) const { return static_cast<float>(key - query); }
  };
  OfHead head_bias(int, int) const { return {}; }
};
#endif

using Model =
    tf::Transformer<tf::Dims{.vocab = 101, .d_model = 48, .n_layers = 3, .d_ff = 96, .max_seq = 64}, tf::RMSNorm{},
                    tf::SwiGLU{}, DistanceBias{}, tf::GQA{.heads = 6, .kv_heads = 2}, tf::PreNorm{}>;
Model model;
