/// The CUDA kernels of one layer of a published model, in float and bf16: a unit of the table of compile times.
#include <typeformer/cuda.cuh>
#include <typeformer/family/llama.hpp>

namespace tf = typeformer;

template <class M, class T>  // a model reaches kernels through templates: nvcc cannot re-emit M::norm of a named type
void layer(tf::cuda::Device& on, const tf::NormArgs<T>& norm, const tf::NormBackwardArgs<T>& norm_gradient,
           const tf::AttendArgs<T>& attention, const tf::AttendBackwardArgs<T>& attention_gradient) {
  constexpr auto form = tf::norm_form(tf::fixed<M::norm>);
  constexpr tf::ScoreForm<false, tf::NoBias> score{M::score_scale, 0.f, {}};
  tf::cuda::norm_rows(on, form, norm);
  tf::cuda::attend(on, tf::Causal{}, score, attention);
  tf::cuda::attend_backward(on, tf::Causal{}, score, attention_gradient);
  tf::cuda::norm_rows_backward(on, form, norm_gradient);
}

template <class M>
struct Layers {
  static constexpr auto in_float = &layer<M, float>;
  static constexpr auto in_bf16 = &layer<M, tf::bf16>;
};
auto* in_float = Layers<tf::SmolLM2_135M>::in_float;
auto* in_bf16 = Layers<tf::SmolLM2_135M>::in_bf16;
