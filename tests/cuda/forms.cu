// Kernels of the CUDA device for nvcc: tests/cuda/nvcc.py reads ptxas' report. All head_dims with the plainest form,
// all masks and scores with head_dim 64, and what published models have besides: Gemma 2 and 3 (256), T5 (64). FORMS
// chooses a part, so that parts can be compiled side by side: 1 norms and column sums, 2 attention on float, 3
// attention on bf16, 4 tables, activations, arrays, losses and sampling, 5 queries and keys, 6 attention by splits.
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
#define WIDE_ATTENTION(T, Mask, Score) \
  FORWARD(T, 256, Mask, Score)         \
  QUERIES(T, 256, Mask, Score)         \
  KEYS(T, 256, keys, Mask, Score)      \
  KEYS(T, 256, values, Mask, Score)
#define ALL_ATTENTION(T)                   \
  ATTENTION(T, 32, Causal, Plain)          \
  ATTENTION(T, 64, Causal, Plain)          \
  ATTENTION(T, 128, Causal, Plain)         \
  WIDE_ATTENTION(T, Causal, Plain)         \
  WIDE_ATTENTION(T, SlidingWindow, Plain)  \
  WIDE_ATTENTION(T, SlidingWindow, Capped) \
  WIDE_ATTENTION(T, Causal, Capped)        \
  ATTENTION(T, 64, Bidirectional, Table)   \
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
#define SPLITS(T, depth, Mask, Score)                                                                            \
  template __global__ void attend_split<DecodeTileOf<T, depth>::type, Mask, Score, T>(std::int64_t, Mask, Score, \
                                                                                      DecodeTask<T>);
#define ALL_SPLITS(T)                                                                                         \
  SPLITS(T, 32, Causal, Plain)                                                                                \
  SPLITS(T, 64, Causal, Plain)                                                                                \
  SPLITS(T, 128, Causal, Plain)                                                                               \
  SPLITS(T, 256, Causal, Plain)                                                                               \
  SPLITS(T, 64, Bidirectional, Plain)                                                                         \
  SPLITS(T, 64, Chunked, Plain)                                                                               \
  SPLITS(T, 64, PrefixCausal, Plain)                                                                          \
  SPLITS(T, 64, SlidingWindow, Capped)                                                                        \
  SPLITS(T, 64, Causal, Alibi)                                                                                \
  SPLITS(T, 128, Causal, Table)                                                                               \
  SPLITS(T, 256, SlidingWindow, Plain)                                                                        \
  SPLITS(T, 256, SlidingWindow, Capped)                                                                       \
  SPLITS(T, 64, Causal, Table)                                                                                \
  SPLITS(T, 64, Bidirectional, Table)                                                                         \
  template __global__ void combine_splits<Bidirectional, T>(std::int64_t, Bidirectional, DecodeTask<T>, int); \
  template __global__ void combine_splits<PrefixCausal, T>(std::int64_t, PrefixCausal, DecodeTask<T>, int);   \
  template __global__ void combine_splits<Causal, T>(std::int64_t, Causal, DecodeTask<T>, int);               \
  template __global__ void combine_splits<Chunked, T>(std::int64_t, Chunked, DecodeTask<T>, int);             \
  template __global__ void combine_splits<SlidingWindow, T>(std::int64_t, SlidingWindow, DecodeTask<T>, int);

#define NORM(Policy, gain, bias, T)                                                                                  \
  template __global__ void norm_rows<NormForm<Policy, gain, bias>, vector_elements<T>, T>(                           \
      std::int64_t, NormForm<Policy, gain, bias>, NormArgs<T>);                                                      \
  template __global__ void norm_rows<NormForm<Policy, gain, bias>, 1, T>(std::int64_t, NormForm<Policy, gain, bias>, \
                                                                         NormArgs<T>);                               \
  template __global__ void norm_rows_backward<NormForm<Policy, gain, bias>, vector_elements<T>, T>(                  \
      std::int64_t, NormForm<Policy, gain, bias>, NormBackwardArgs<T>);                                              \
  template __global__ void norm_rows_backward<NormForm<Policy, gain, bias>, 1, T>(                                   \
      std::int64_t, NormForm<Policy, gain, bias>, NormBackwardArgs<T>);
#define NORM_WITH_GAIN(Policy, gain, bias, T)                                             \
  NORM(Policy, gain, bias, T)                                                             \
  template __global__ void sum_slabs<GainGradientTerms<NormForm<Policy, gain, bias>, T>>( \
      std::int64_t, GainGradientTerms<NormForm<Policy, gain, bias>, T>, ColumnPieces, float*);
#define ALL_NORMS(T)                                \
  NORM_WITH_GAIN(RMSNorm, Gain::weight, false, T)   \
  NORM_WITH_GAIN(RMSNorm, Gain::one_plus, false, T) \
  NORM(RMSNorm, Gain::none, false, T)               \
  NORM_WITH_GAIN(LayerNorm, Gain::weight, true, T)  \
  NORM_WITH_GAIN(LayerNorm, Gain::weight, false, T) \
  NORM(LayerNorm, Gain::none, false, T)             \
  template __global__ void sum_slabs<MatrixTerms<T>>(std::int64_t, MatrixTerms<T>, ColumnPieces, float*);

#define ROWS_OF_TABLE(T, W, elements)                                                   \
  template __global__ void gather_rows<elements, T, W>(std::int64_t, GatherArgs<T, W>); \
  template __global__ void gather_rows<1, T, W>(std::int64_t, GatherArgs<T, W>);
#define ACTIVATION(f, elements, T)                                                          \
  template __global__ void activate<f, elements, T>(std::int64_t, f, ActivateArgs<T>, int); \
  template __global__ void activate_backward<f, elements, T>(std::int64_t, f, ActivateBackwardArgs<T>, int);
#define ACTIVATIONS(f, T)                     \
  ACTIVATION(f, vector_elements<T>, T)        \
  ACTIVATION(f, 1, T)                         \
  ACTIVATION(Gated<f>, vector_elements<T>, T) \
  ACTIVATION(Gated<f>, 1, T)
#define ARRAYS(T)                                                                                                 \
  template __global__ void add<vector_elements<T>, T>(std::int64_t, std::int64_t, AddArgs<T>);                    \
  template __global__ void add<1, T>(std::int64_t, std::int64_t, AddArgs<T>);                                     \
  template __global__ void gather_rows_backward<vector_elements<T>, T>(std::int64_t, GatherBackwardArgs<T>, int); \
  template __global__ void gather_rows_backward<1, T>(std::int64_t, GatherBackwardArgs<T>, int);                  \
  template __global__ void cross_entropy<T>(std::int64_t, CrossEntropyArgs<T>);
#define FLOAT_ARRAYS(elements)                                                                            \
  template __global__ void adamw<elements>(std::int64_t, std::int64_t, AdamWArgs, AdamWCorrections);      \
  template __global__ void sum_squares<elements>(std::int64_t, const float*, std::int64_t, int, double*); \
  template __global__ void shape_logits<elements>(std::int64_t, std::int64_t, ShapeLogitsArgs);
#define ALL_ACTIVATIONS(T)    \
  ACTIVATIONS(ReLU, T)        \
  ACTIVATIONS(SquaredReLU, T) \
  ACTIVATIONS(GELU, T)        \
  ACTIVATIONS(GELUTanh, T)    \
  ACTIVATIONS(Sigmoid, T)     \
  ACTIVATIONS(SiLU, T)        \
  ACTIVATIONS(QuickGELU, T)   \
  ACTIVATIONS(ELU, T)         \
  ACTIVATIONS(SELU, T)        \
  ACTIVATIONS(Identity, T)

#define HEADS_AT(Norm, pairs, elements, slots, T)                                                                  \
  template __global__ void prepare_heads<Norm, pairs, elements, slots, T>(std::int64_t, Norm, Rotation<pairs>,     \
                                                                          HeadsArgs<T>, HeadsPlan);                \
  template __global__ void prepare_all_heads<Norm, pairs, elements, slots, T>(std::int64_t, Norm, Rotation<pairs>, \
                                                                              HeadsArgs<T>, int);                  \
  template __global__ void prepare_heads_backward<Norm, pairs, elements, slots, T>(                                \
      std::int64_t, Norm, Rotation<pairs>, HeadsBackwardArgs<T>, HeadsPlan, HeadsSums);                            \
  template __global__ void all_heads_gradient_statistics<Norm, pairs, elements, slots, T>(                         \
      std::int64_t, Norm, Rotation<pairs>, HeadsBackwardArgs<T>, int, HeadGradientStatistics*);
#define HEADS(Norm, T)                                      \
  HEADS_AT(Norm, Pairs::halves, vector_elements<T>, 1, T)   \
  HEADS_AT(Norm, Pairs::halves, 1, scalar_head_slots, T)    \
  HEADS_AT(Norm, Pairs::adjacent, vector_elements<T>, 1, T) \
  HEADS_AT(Norm, Pairs::adjacent, 1, scalar_head_slots, T)
using HeadsNoNorm = NormForm<NoNorm, Gain::none, false>;
using HeadsRmsNorm = NormForm<RMSNorm, Gain::weight, false>;
using HeadsOnePlus = NormForm<RMSNorm, Gain::one_plus, false>;
using HeadsLayerNorm = NormForm<LayerNorm, Gain::weight, true>;
#define ALL_HEADS(T) HEADS(HeadsNoNorm, T) HEADS(HeadsRmsNorm, T) HEADS(HeadsOnePlus, T) HEADS(HeadsLayerNorm, T)

#if FORMS == 1
ALL_NORMS(float)
ALL_NORMS(bf16)
template __global__ void add_slabs<float>(std::int64_t, ColumnPieces, const float*, float*);
template __global__ void round_numbers<bf16>(std::int64_t, bf16*, const float*, int);
template __global__ void add_bias_gradient<float>(std::int64_t, TableBiasForm, float*, std::int64_t, int, float*);
#elif FORMS == 4
ROWS_OF_TABLE(float, float, 4)
ROWS_OF_TABLE(bf16, bf16, 8)
ROWS_OF_TABLE(bf16, float, 8)
ALL_ACTIVATIONS(float)
ALL_ACTIVATIONS(bf16)
ARRAYS(float)
ARRAYS(bf16)
FLOAT_ARRAYS(vector_elements<float>)
FLOAT_ARRAYS(1)
template __global__ void sample_rows<sample_most_threads>(std::int64_t, SampleArgs);
template __global__ void add_up<double>(std::int64_t, const double*, int, double*);
#elif FORMS == 5
ALL_HEADS(float)
ALL_HEADS(bf16)
#elif FORMS == 6
ALL_SPLITS(float)
ALL_SPLITS(bf16)
#elif FORMS == 2
ALL_ATTENTION(float)
#else
ALL_ATTENTION(bf16)
#endif

}  // namespace typeformer::inline TYPEFORMER_ABI::cuda::detail
