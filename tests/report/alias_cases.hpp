/// Compositions whose aliases are printed, compiled and compared with what they were printed from.
#pragma once
#include "model/tiny_models.hpp"
#include "typeformer/family/gemma.hpp"
#include "typeformer/family/llama.hpp"
#include "typeformer/family/t5.hpp"

namespace alias_cases {
using namespace typeformer;

template <class... M>
struct List {};

using Base = Transformer<Dims{.vocab = 50, .d_model = 24, .n_layers = 6, .d_ff = 40, .max_seq = 64}, RMSNorm{},
                         SwiGLU{}, RoPE{}, MHA(4), PreNorm{}, Name{"base \"1\" \\ \0010"}>;
/// The base with other values in every slot and option, several at a time.
template <auto... News>
using With = typename detail::WithAll<Base, News...>::type;
template <auto Position>
using Encoder = With<Position, Bidirectional{}, NoHead{}, LayerNorm{.eps = 1e-12f}, PostNorm{}, GELU{}>;

using All = List<
    SmolLM2_135M, SmolLM2_1_7B, Llama3_2_1B, Llama2_7B, Gemma3_270M, T5_small, T5_v1_1_small, tiny::Llama,
    tiny::LlamaTied, tiny::Gemma3, tiny::T5, tiny::T5Gated, Base,
    With<LayerNorm{.gain = Gain::none, .bias = false}, GELUTanh{}, Sinusoidal{.layout = SinusoidLayout::spread},
         PostNorm{}, Biases{.output = false, .head = true}>,
    With<LayerNorm{.bias = false}, QuickGELU{}, LearnedPositions{.offset = 2}, OutputNorm{}, LogitScale{.0625f}>,
    With<NoNorm{}, SquaredReLU{}, NoPosition{}, EmbeddingScale{12.f}, Biases{.qkv = false}>,
    With<RMSNorm{.eps = 1e-6f, .gain = Gain::one_plus, .bias = true}, GeGLU{}, ALiBi{}, Parallel{}, PrefixCausal{}>,
    With<ReGLU{}, RoPE{.theta = 5e5f, .pairs = Pairs::adjacent, .fraction = 1.f / 3}, Parallel{.shared_norm = false},
         EmbeddingNorm<LayerNorm{}>{}, Biases{.feed_forward = false}>,
    With<LiGLU{}, GQA{.heads = 4, .kv_heads = 1, .head_dim = 8, .scale = .3f, .softcap = 50.f}, FinalSoftcap{30.f},
         QKNorm<LayerNorm{.bias = false}>{.width = QKWidth::head_own_weights}>,
    With<GLU{}, QKNorm<RMSNorm{}>{.width = QKWidth::all_heads, .after_rope = true}, Chunked{7}, TiedEmbeddings{}>,
    With<ELU{}, RoPE{.scaling = {.kind = RopeScaling::Kind::yarn, .factor = 4.f, .original_context = 16}},
         LocalLayers<Chunked{8}, NoPosition{}>{.period = 4, .locals = 3}>,
    With<SiLU{}, Sinusoidal{.base = 500.f, .layout = SinusoidLayout::halves}, LocalLayers<SlidingWindow{4}>{}>,
    Encoder<LearnedPositions{}>, Encoder<T5Buckets{.buckets = 16, .bidirectional = true}>,
    EncoderDecoder<Encoder<Sinusoidal{}>, With<Sinusoidal{}, LayerNorm{}, PostNorm{}, GELU{}>>>;

/// A few that differ in what passes do: tests that instantiate passes take these.
using Few = List<tiny::Llama, tiny::Gemma3, tiny::T5, tiny::T5Gated,
                 With<LayerNorm{.gain = Gain::none, .bias = false}, GELUTanh{}, Sinusoidal{}, PostNorm{}, Biases{}>,
                 With<RMSNorm{.eps = 1e-6f, .gain = Gain::one_plus, .bias = true}, GeGLU{}, ALiBi{}, Parallel{}>,
                 With<ReGLU{}, LearnedPositions{}, Parallel{.shared_norm = false}, EmbeddingNorm<LayerNorm{}>{}>,
                 Encoder<T5Buckets{.buckets = 16, .bidirectional = true}>>;

/// Calls f.operator()<M>(number) for every case.
template <class... M, class F>
void for_each(List<M...>, F&& f) {
  int number = 0;
  (f.template operator()<M>(number++), ...);
}

}  // namespace alias_cases
