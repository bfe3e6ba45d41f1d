// Every kernel of the CUDA device that a model's forms can ask for, for nvcc: tests/cuda/nvcc.py reads ptxas' report.
// All head_dims with the plainest form; all masks and scores with head_dim 64. FORMS chooses a part, so that parts can
// be compiled side by side: 1 norms and column sums, 2 attention on float, 3 attention on bf16.
#include "typeformer/cuda.cuh"

namespace typeformer::inline TYPEFORMER_ABI::cuda::detail {

using Plain = ScoreForm<false, NoBias>;
using Capped = ScoreForm<true, NoBias>;
using Alibi = ScoreForm<false, FormulaBiasForm<ALiBi>>;
using Table = ScoreForm<false, TableBiasForm>;

#define FORWARD(T, depth, Mask, Score)                                                             \
  template __global__ void attend<TileOf<T, depth, AttentionPass::forward>::type, Mask, Score, T>( \
      std::int64_t, Mask, Score, AttendTask<T>);
#define QUERIES(T, depth, Mask, Score)                                                                              \
  template __global__ void attend_backward_queries<TileOf<T, depth, AttentionPass::queries>::type, Mask, Score, T>( \
      std::int64_t, Mask, Score, AttendBackwardTask<T>);
#define KEYS(T, depth, which, Mask, Score)                                                                        \
  template __global__ void attend_backward_keys<TileOf<T, depth, AttentionPass::keys>::type, KeyGradients::which, \
                                                Mask, Score, T>(std::int64_t, Mask, Score, AttendBackwardTask<T>);
#define ATTENTION(T, depth, Mask, Score) \
  FORWARD(T, depth, Mask, Score) QUERIES(T, depth, Mask, Score) KEYS(T, depth, both, Mask, Score)
#define ALL_ATTENTION(T)                   \
  ATTENTION(T, 32, Causal, Plain)          \
  ATTENTION(T, 64, Causal, Plain)          \
  ATTENTION(T, 128, Causal, Plain)         \
  FORWARD(T, 256, Causal, Plain)           \
  QUERIES(T, 256, Causal, Plain)           \
  KEYS(T, 256, keys, Causal, Plain)        \
  KEYS(T, 256, values, Causal, Plain)      \
  ATTENTION(T, 64, Bidirectional, Plain)   \
  ATTENTION(T, 64, SlidingWindow, Plain)   \
  ATTENTION(T, 64, Chunked, Plain)         \
  ATTENTION(T, 64, PrefixCausal, Plain)    \
  ATTENTION(T, 64, SlidingWindow, Capped)  \
  ATTENTION(T, 64, Causal, Alibi)          \
  ATTENTION(T, 64, Causal, Table)          \
  ATTENTION(T, 128, SlidingWindow, Capped) \
  ATTENTION(T, 128, Bidirectional, Table)  \
  template __global__ void attend_row_dots<T>(std::int64_t, AttendBackwardTask<T>, int);

#define NORM(Policy, gain, bias, T)                                                                                  \
  template __global__ void norm_rows<NormForm<Policy, gain, bias>, vector_elements<T>, T>(                           \
      std::int64_t, NormForm<Policy, gain, bias>, NormArgs<T>);                                                      \
  template __global__ void norm_rows<NormForm<Policy, gain, bias>, 1, T>(std::int64_t, NormForm<Policy, gain, bias>, \
                                                                         NormArgs<T>);                               \
  template __global__ void norm_rows_backward<NormForm<Policy, gain, bias>, vector_elements<T>, T>(                  \
      std::int64_t, NormForm<Policy, gain, bias>, NormBackwardArgs<T>);                                              \
  template __global__ void norm_rows_backward<NormForm<Policy, gain, bias>, 1, T>(                                   \
      std::int64_t, NormForm<Policy, gain, bias>, NormBackwardArgs<T>);                                              \
  template __global__ void sum_slabs<GainGradientTerms<NormForm<Policy, gain, bias>, T>>(                            \
      std::int64_t, GainGradientTerms<NormForm<Policy, gain, bias>, T>, ColumnPieces, float*);
#define ALL_NORMS(T)                      \
  NORM(RMSNorm, Gain::weight, false, T)   \
  NORM(RMSNorm, Gain::one_plus, false, T) \
  NORM(RMSNorm, Gain::none, false, T)     \
  NORM(LayerNorm, Gain::weight, true, T)  \
  NORM(LayerNorm, Gain::weight, false, T) \
  NORM(LayerNorm, Gain::none, false, T)   \
  template __global__ void sum_slabs<BiasGradientTerms<T>>(std::int64_t, BiasGradientTerms<T>, ColumnPieces, float*);

#if FORMS == 1
ALL_NORMS(float)
ALL_NORMS(bf16)
template __global__ void add_slabs<float>(std::int64_t, ColumnPieces, const float*, float*);
template __global__ void round_numbers<bf16>(std::int64_t, bf16*, const float*, int);
template __global__ void add_bias_gradient<float>(std::int64_t, TableBiasForm, float*, std::int64_t, int, float*);
#elif FORMS == 2
ALL_ATTENTION(float)
#else
ALL_ATTENTION(bf16)
#endif

}  // namespace typeformer::inline TYPEFORMER_ABI::cuda::detail
