// expect: LearnedPositions must have an offset of 0 or more: position p reads row p + offset of the table. Change
// LearnedPositions{.offset}.
#include "typeformer/policy/composition.hpp"

namespace tf = typeformer;

#ifdef WRONG
constexpr tf::LearnedPositions position{.offset = -1};
#else
constexpr tf::LearnedPositions position{.offset = 2};
#endif

using Model = tf::Transformer<tf::Dims{.vocab = 101, .d_model = 48, .n_layers = 3, .d_ff = 96, .max_seq = 64},
                              tf::LayerNorm{}, tf::GELU{}, position, tf::MHA(6), tf::PreNorm{}>;
Model model;
