/// The CUDA kernels of one layer of a published model, in float and bf16: a unit of the table of compile times.
#include <typeformer/cuda.cuh>
#include <typeformer/family/llama.hpp>

namespace tf = typeformer;

template <class T>
void layer(tf::cuda::Device& on, const tf::NormArgs<T>& norm, const tf::NormBackwardArgs<T>& norm_gradient,
           const tf::AttendArgs<T>& attention, const tf::AttendBackwardArgs<T>& attention_gradient) {
  constexpr auto form = tf::norm_form(tf::fixed<tf::SmolLM2_135M::norm>);
  constexpr tf::ScoreForm<false, tf::NoBias> score{tf::SmolLM2_135M::score_scale, 0.f, {}};
  tf::cuda::norm_rows(on, form, norm);
  tf::cuda::attend(on, tf::Causal{}, score, attention);
  tf::cuda::attend_backward(on, tf::Causal{}, score, attention_gradient);
  tf::cuda::norm_rows_backward(on, form, norm_gradient);
}

template void layer<float>(tf::cuda::Device&, const tf::NormArgs<float>&, const tf::NormBackwardArgs<float>&,
                           const tf::AttendArgs<float>&, const tf::AttendBackwardArgs<float>&);
template void layer<tf::bf16>(tf::cuda::Device&, const tf::NormArgs<tf::bf16>&, const tf::NormBackwardArgs<tf::bf16>&,
                              const tf::AttendArgs<tf::bf16>&, const tf::AttendBackwardArgs<tf::bf16>&);
