// expect: an optimizer updates master weights in float: an update is often smaller than half a unit in the last place
// of bf16 or f16 and would be lost. Train a Model<M, Device, float> and round a copy of it.
#include "typeformer/cpu.hpp"
#include "typeformer/train.hpp"

namespace tf = typeformer;

#ifdef WRONG
using Weight = tf::bf16;
#else
using Weight = float;
#endif

using Architecture = tf::Transformer<tf::Dims{.vocab = 101, .d_model = 48, .n_layers = 3, .d_ff = 96, .max_seq = 64},
                                     tf::RMSNorm{}, tf::SwiGLU{}, tf::RoPE{}, tf::MHA(6), tf::PreNorm{}>;
using Device = tf::cpu::Device;

void update(tf::AdamW<Architecture, Device>& optimizer, tf::Model<Architecture, Device, Weight>& model,
            const tf::Gradients<Architecture, Device>& gradients) {
  optimizer.step(model, gradients);
}
