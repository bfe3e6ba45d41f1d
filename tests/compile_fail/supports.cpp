// expect: the device must have attend for this model's masks and scores: every layer attends. Write attend(Device&,
// mask, score form, const AttendArgs<T>&) beside the device's other operations.

// expect: the device must have attend_backward for this model's masks and scores to train: gradients pass through
// attention. Write attend_backward(Device&, mask, score form, const AttendBackwardArgs<T>&), or ask for
// Use::inference.
#include "typeformer/kernel/supports.hpp"
#include "typeformer/cpu.hpp"

namespace tf = typeformer;

using Model = tf::Transformer<tf::Dims{.vocab = 101, .d_model = 48, .n_layers = 3, .d_ff = 96, .max_seq = 64},
                              tf::RMSNorm{}, tf::SwiGLU{}, tf::RoPE{}, tf::MHA(6), tf::PreNorm{}>;

/// The CPU's operations but for one.
struct Device : tf::cpu::Device {};
#if defined(WRONG) && WRONG == 1
template <class Mask, class Score>
void attend(Device&, const Mask&, const Score&, const tf::AttendArgs<float>&) = delete;
#elif defined(WRONG)
template <class Mask, class Score>
void attend_backward(Device&, const Mask&, const Score&, const tf::AttendBackwardArgs<float>&) = delete;
#endif

static_assert(tf::supports<Device, Model>);
