// expect: the device must have attend for this model's masks and scores: every layer attends. Write attend(Device&,
// mask, score form, const AttendArgs<T>&) beside the device's other operations.

// expect: the device must have attend_backward for this model's masks and scores to train: gradients pass through
// attention. Write attend_backward(Device&, mask, score form, const AttendBackwardArgs<T>&), or ask for
// Use::inference.

// expect: a head must have at most the device's largest_head_dim channels: its kernels keep a head's numbers in
// registers. Choose a smaller head_dim, as in GQA{.head_dim}, or another device.
#include "typeformer/kernel/supports.hpp"
#include "typeformer/cpu.hpp"

namespace tf = typeformer;

using Model = tf::Transformer<tf::Dims{.vocab = 101, .d_model = 48, .n_layers = 3, .d_ff = 96, .max_seq = 64},
                              tf::RMSNorm{}, tf::SwiGLU{}, tf::RoPE{}, tf::MHA(6), tf::PreNorm{}>;

/// The CPU's operations but for one.
struct Device : tf::cpu::Device {
#if defined(WRONG) && WRONG == 3
  static constexpr int largest_head_dim = 7;
#endif
};
#if defined(WRONG) && WRONG == 1
template <class Mask, class Score>
void attend(Device&, const Mask&, const Score&, const tf::AttendArgs<float>&) = delete;
#elif defined(WRONG) && WRONG == 2
template <class Mask, class Score>
void attend_backward(Device&, const Mask&, const Score&, const tf::AttendBackwardArgs<float>&) = delete;
#endif

static_assert(tf::supports<Device, Model>);
