// expect: a layer pattern's kind(layer) must be constexpr and one of 0 .. kinds - 1 for every layer, and changes<kind>
// a Changes<...>: a layer has to know its composition. Change the pattern's kinds, kind(layer) or changes.
#include "typeformer/policy/composition.hpp"

namespace tf = typeformer;

/// The last layer differs from the others.
struct LastLayer {
  static constexpr int kinds = 2;
#ifdef WRONG
  int kind(int layer) const { return layer == 2 ? 1 : 0; }
#else
  constexpr int kind(int layer) const { return layer == 2 ? 1 : 0; }
#endif
  template <int kind>
  using changes = std::conditional_t<kind == 0, tf::Changes<>, tf::Changes<tf::NoPosition{}>>;
};
using Model =
    tf::Transformer<tf::Dims{.vocab = 101, .d_model = 48, .n_layers = 3, .d_ff = 96, .max_seq = 64}, tf::RMSNorm{},
                    tf::SwiGLU{}, tf::RoPE{}, tf::GQA{.heads = 6, .kv_heads = 2}, tf::PreNorm{}, LastLayer{}>;
Model model;
