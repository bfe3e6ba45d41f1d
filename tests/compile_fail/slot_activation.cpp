// expect: argument 3 must be an activation such as SwiGLU{} or GELU{}: the feed-forward network needs one. Your own
// needs gated, a call operator and its derivative (derivative_gate and derivative_up when gated).
#include <cmath>

#include "typeformer/policy/composition.hpp"

namespace tf = typeformer;

#ifdef WRONG
// The derivative returns double.
struct Softplus {
  static constexpr bool gated = false;
  float operator()(float x) const { return std::log1p(std::exp(x)); }
  double derivative(float x) const { return 1 / (1 + std::exp(-double{x})); }
};
#else
struct Softplus {
  static constexpr bool gated = false;
  float operator()(float x) const { return std::log1p(std::exp(x)); }
  float derivative(float x) const { return 1.f / (1.f + std::exp(-x)); }
};
#endif

using Model = tf::Transformer<tf::Dims{.vocab = 101, .d_model = 48, .n_layers = 3, .d_ff = 96, .max_seq = 64},
                              tf::RMSNorm{}, Softplus{}, tf::RoPE{}, tf::GQA{.heads = 6, .kv_heads = 2}, tf::PreNorm{}>;
Model model;
