// supports<Device, M>: every operation of the contract, taken away one by one; only what a model needs is asked for.
#include <doctest/doctest.h>

#include <string>

#include "model/tiny_models.hpp"
#include "typeformer/cpu.hpp"
#include "typeformer/kernel/supports.hpp"
#include "typeformer/model/tables.hpp"

namespace tf = typeformer;

namespace lacking {

/// The operations in the contract's order; a Device<i> has all but number i.
enum Operation {
  memory,
  gather_rows_,
  norm_rows_,
  linear_,
  prepare_heads_,
  attend_,
  activate_,
  shape_logits_,
  sample_rows_,
  gather_rows_backward_,
  norm_rows_backward_,
  linear_backward_,
  prepare_heads_backward_,
  attend_backward_,
  activate_backward_,
  cross_entropy_,
  add_,
  adamw_,
  sum_of_squares_,
  nothing
};
constexpr const char* names[] = {"memory",
                                 "gather_rows",
                                 "norm_rows",
                                 "linear",
                                 "prepare_heads",
                                 "attend",
                                 "activate",
                                 "shape_logits",
                                 "sample_rows",
                                 "gather_rows_backward",
                                 "norm_rows_backward",
                                 "linear_backward",
                                 "prepare_heads_backward",
                                 "attend_backward",
                                 "activate_backward",
                                 "cross_entropy",
                                 "add",
                                 "adamw",
                                 "sum_of_squares"};

template <int without>
struct Device {
  void* allocate(std::size_t) requires(without != memory);
  void release(void*);
  void upload(void*, const void*, std::size_t);
  void download(void*, const void*, std::size_t);
  void zero(void*, std::size_t);
};

template <int without, class T, class W>
void gather_rows(Device<without>&, const tf::GatherArgs<T, W>&) requires(without != gather_rows_);
template <int without, class Norm>
void norm_rows(Device<without>&, const Norm&, const tf::NormArgs<float>&) requires(without != norm_rows_);
template <int without>
void linear(Device<without>&, const tf::LinearArgs<float, float>&) requires(without != linear_);
template <int without, class Norm, tf::Pairs pairs>
void prepare_heads(Device<without>&, const Norm&, const tf::Rotation<pairs>&,
                   const tf::HeadsArgs<float>&) requires(without != prepare_heads_);
template <int without, class Mask, class Score>
void attend(Device<without>&, const Mask&, const Score&, const tf::AttendArgs<float>&) requires(without != attend_);
template <int without, class Activation>
void activate(Device<without>&, const Activation&, const tf::ActivateArgs<float>&) requires(without != activate_);
template <int without>
void shape_logits(Device<without>&, const tf::ShapeLogitsArgs&) requires(without != shape_logits_);
template <int without>
void sample_rows(Device<without>&, const tf::SampleArgs&) requires(without != sample_rows_);
template <int without>
void gather_rows_backward(Device<without>&,
                          const tf::GatherBackwardArgs<float>&) requires(without != gather_rows_backward_);
template <int without, class Norm>
void norm_rows_backward(Device<without>&, const Norm&,
                        const tf::NormBackwardArgs<float>&) requires(without != norm_rows_backward_);
template <int without, class W>
void linear_backward(Device<without>&, const tf::LinearBackwardArgs<float, W>&) requires(without != linear_backward_);
template <int without, class Norm, tf::Pairs pairs>
void prepare_heads_backward(Device<without>&, const Norm&, const tf::Rotation<pairs>&,
                            const tf::HeadsBackwardArgs<float>&) requires(without != prepare_heads_backward_);
template <int without, class Mask, class Score>
void attend_backward(Device<without>&, const Mask&, const Score&,
                     const tf::AttendBackwardArgs<float>&) requires(without != attend_backward_);
template <int without, class Activation>
void activate_backward(Device<without>&, const Activation&,
                       const tf::ActivateBackwardArgs<float>&) requires(without != activate_backward_);
template <int without>
void cross_entropy(Device<without>&, const tf::CrossEntropyArgs<float>&) requires(without != cross_entropy_);
template <int without>
void add(Device<without>&, const tf::AddArgs<float>&) requires(without != add_);
template <int without>
void adamw(Device<without>&, const tf::AdamWArgs&) requires(without != adamw_);
template <int without>
double sum_of_squares(Device<without>&, const float*, std::int64_t) requires(without != sum_of_squares_);

/// Attention with a window only: no other mask.
struct WindowsOnly : Device<attend_> {};
template <class Score>
void attend(WindowsOnly&, const tf::SlidingWindow&, const Score&, const tf::AttendArgs<float>&);

}  // namespace lacking

namespace {

constexpr tf::Dims dims{.vocab = 11, .d_model = 8, .n_layers = 4, .d_ff = 12, .max_seq = 16};
/// Needs every operation: two norms side by side, capped logits.
using Everything = tf::Transformer<dims, tf::RMSNorm{}, tf::SwiGLU{}, tf::RoPE{}, tf::MHA(2),
                                   tf::Parallel{.shared_norm = false}, tf::FinalSoftcap{5.f}>;
using Plain = tf::Transformer<dims, tf::RMSNorm{}, tf::SwiGLU{}, tf::RoPE{}, tf::MHA(2), tf::PreNorm{}>;

template <int without>
void check_without() {
  using Device = lacking::Device<without>;
  CAPTURE(lacking::names[without]);
  CHECK_FALSE(tf::Supports<Device, Everything>);
  CHECK(tf::missing_operations<Device, Everything>() == lacking::names[without]);
  const bool for_training = without > lacking::sample_rows_;
  CHECK(tf::Supports<Device, Everything, tf::Use::inference> == for_training);
  const bool unused = without == lacking::shape_logits_ || without == lacking::add_;
  CHECK(tf::Supports<Device, Plain> == unused);
  CHECK_FALSE(tf::Supports<Device, tiny::T5> != (without == lacking::add_));
}
template <int... without>
void check_all(std::integer_sequence<int, without...>) {
  (check_without<without>(), ...);
}

}  // namespace

TEST_CASE("a device that lacks one operation lacks that one, where the model needs it") {
  static_assert(std::size(lacking::names) == lacking::nothing);
  check_all(std::make_integer_sequence<int, lacking::nothing>{});
  static_assert(tf::supports<lacking::Device<lacking::nothing>, Everything>);
  CHECK(tf::missing_operations<lacking::Device<lacking::nothing>, Everything>().empty());
}

TEST_CASE("what is asked is the policies of every kind of layer, of both stacks, and the type of the weights") {
  using lacking::WindowsOnly;
  using Windows = Plain::with<tf::SlidingWindow{4}>;
  static_assert(tf::Supports<WindowsOnly, Windows> && !tf::Supports<WindowsOnly, Plain>);
  static_assert(!tf::Supports<WindowsOnly, Plain::with<tf::LocalLayers<tf::SlidingWindow{4}>{}>>);
  static_assert(!tf::Supports<WindowsOnly, tiny::T5>);
  using All = lacking::Device<lacking::nothing>;
  static_assert(!tf::Supports<All, Plain, tf::Use::inference, tf::bf16>);  // its linear takes float only
  CHECK(tf::missing_operations<All, Plain, tf::Use::training, tf::bf16>() == "linear");
}

TEST_CASE("the CPU device supports every model") {
  static_assert(tf::supports<tf::cpu::Device, Everything> && tf::supports<tf::cpu::Device, tiny::Llama>);
  static_assert(tf::supports<tf::cpu::Device, tiny::Gemma3> && tf::supports<tf::cpu::Device, tiny::T5>);
  static_assert(tf::supports<tf::cpu::Device, tiny::LlamaTied, tf::Use::training, tf::bf16>);
  static_assert(tf::supports<tf::cpu::Device, Everything::with<tf::ALiBi{}>, tf::Use::inference, tf::f16>);
}

/// The forms that supports asks for are those that the passes make.
template <class L>
constexpr bool same_forms() {
  using Tables = tf::PositionTables<tf::cpu::Device>;
  return std::is_same_v<decltype(tf::detail::score_form<L>(std::declval<const Tables&>(), nullptr)),
                        tf::detail::ScoreOf<L>> &&
         std::is_same_v<decltype(tf::detail::cross_score_form<L>()), tf::detail::CrossScoreOf<L>> &&
         std::is_same_v<decltype(tf::detail::rotation<L>(std::declval<const Tables&>())), tf::detail::RotationOf<L>>;
}
TEST_CASE("the kernel forms are those of the passes") {
  static_assert(same_forms<Plain>() && same_forms<Plain::with<tf::ALiBi{}>>() && same_forms<tiny::T5::Decoder>());
  static_assert(same_forms<tiny::Gemma3::Layer<1>>() && same_forms<Plain::with<tf::NoPosition{}>>());
  static_assert(same_forms<Plain::with<tf::RoPE{.pairs = tf::Pairs::adjacent}>>());
  static_assert(same_forms<Plain::with<tf::GQA{.heads = 2, .kv_heads = 1, .softcap = 3.f}>>());
}
