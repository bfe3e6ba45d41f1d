// Compositions: options in any order, with<>, names, derived models, layer patterns, encoder-decoder, and for every
// rule and slot a composition that `composes` refuses.
#include "typeformer/policy/composition.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <string_view>
#include <type_traits>

namespace tf = typeformer;

namespace {

constexpr tf::Dims dims{.vocab = 101, .d_model = 48, .n_layers = 7, .d_ff = 96, .max_seq = 64};
constexpr tf::GQA heads{.heads = 6, .kv_heads = 2};
using Base = tf::Transformer<dims, tf::RMSNorm{}, tf::SwiGLU{}, tf::RoPE{}, heads, tf::PreNorm{}>;

/// Base's policies, with more options behind them.
template <auto... Options>
constexpr bool composes_with =
    tf::composes<dims, tf::RMSNorm{}, tf::SwiGLU{}, tf::RoPE{}, heads, tf::PreNorm{}, Options...>;

}  // namespace

TEST_CASE("what a composition knows") {
  static_assert(tf::Composition<Base>);
  CHECK(Base::dims.d_model == 48);
  CHECK(Base::heads == 6);
  CHECK(Base::kv_heads == 2);
  CHECK(Base::head_dim == 8);
  CHECK(Base::q_width == 48);
  CHECK(Base::kv_width == 16);
  CHECK(Base::qkv_width == 80);
  CHECK(Base::ffn_in_width == 192);  // gate and up
  CHECK(Base::with<tf::GELU{}>::ffn_in_width == 96);
  CHECK(Base::score_scale == doctest::Approx(1 / std::sqrt(8.)).epsilon(1e-7));
  CHECK(Base::with<tf::GQA{.heads = 6, .kv_heads = 2, .scale = .25f}>::score_scale == .25f);
  using Wide = Base::with<tf::GQA{.heads = 5, .kv_heads = 1, .head_dim = 16}>;  // 5 does not divide 48
  CHECK(Wide::head_dim == 16);
  CHECK(Wide::q_width == 80);
  CHECK(tf::MHA(6, 16).kv_heads == 6);
  CHECK(tf::MQA(6).kv_heads == 1);
}

TEST_CASE("options not given are off") {
  static_assert(std::is_same_v<tf::policy_t<Base::mask>, tf::Causal>);
  static_assert(std::is_same_v<tf::policy_t<Base::qk_norm.norm>, tf::NoNorm>);
  static_assert(std::is_same_v<tf::policy_t<Base::embedding_norm>, tf::NoNorm>);
  CHECK_FALSE(Base::tied);
  CHECK(Base::has_head);
  CHECK_FALSE(Base::cross_attention);
  CHECK_FALSE((Base::biases.qkv || Base::biases.output || Base::biases.feed_forward || Base::biases.head));
  CHECK(Base::embedding_scale == 1.f);
  CHECK(Base::logit_scale == 1.f);
  CHECK(Base::final_softcap == 0.f);
  CHECK(Base::layer_kinds == 1);
  CHECK(Base::name == "unnamed");
}

TEST_CASE("options in any order say the same") {
  using A = tf::Transformer<dims, tf::RMSNorm{}, tf::SwiGLU{}, tf::RoPE{}, heads, tf::PreNorm{}, tf::TiedEmbeddings{},
                            tf::SlidingWindow{5}, tf::EmbeddingScale{}, tf::LogitScale{.5f}, tf::FinalSoftcap{30.f},
                            tf::Biases{.output = false}, tf::QKNorm<tf::RMSNorm{.eps = 1e-3f}>{.after_rope = true},
                            tf::EmbeddingNorm<tf::LayerNorm{}>{}, tf::Name{"all"}>;
  using B =
      tf::Transformer<dims, tf::RMSNorm{}, tf::SwiGLU{}, tf::RoPE{}, heads, tf::PreNorm{}, tf::Name{"all"},
                      tf::EmbeddingNorm<tf::LayerNorm{}>{}, tf::QKNorm<tf::RMSNorm{.eps = 1e-3f}>{.after_rope = true},
                      tf::FinalSoftcap{30.f}, tf::Biases{.output = false}, tf::LogitScale{.5f}, tf::EmbeddingScale{},
                      tf::SlidingWindow{5}, tf::TiedEmbeddings{}>;
  const auto check = [](auto model) {
    using M = decltype(model);
    CHECK(M::tied);
    CHECK(M::mask.window == 5);
    CHECK(M::embedding_scale == doctest::Approx(std::sqrt(48.)).epsilon(1e-7));
    CHECK(M::logit_scale == .5f);
    CHECK(M::final_softcap == 30.f);
    CHECK(M::biases.qkv);
    CHECK_FALSE(M::biases.output);
    CHECK(M::qk_norm.norm.eps == 1e-3f);
    CHECK(M::qk_norm.after_rope);
    CHECK(M::embedding_norm.bias);
    CHECK(M::name == "all");
  };
  check(A{});
  check(B{});
  CHECK(Base::with<tf::LogitScale{}>::logit_scale == doctest::Approx(1 / std::sqrt(48.)).epsilon(1e-7));
}

TEST_CASE("equal compositions are the same type") {
  static_assert(
      std::is_same_v<Base, tf::Transformer<tf::Dims{101, 48, 7, 96, 64}, tf::RMSNorm{.eps = 1e-5f}, tf::SwiGLU{},
                                           tf::RoPE{.theta = 10000.f}, tf::GQA{6, 2}, tf::PreNorm{}>>);
  static_assert(!std::is_same_v<Base, Base::with<tf::RMSNorm{.eps = 1e-6f}>>);
}

TEST_CASE("with replaces a slot, an option or the dims, and adds an option that was not there") {
  static_assert(std::is_same_v<tf::policy_t<Base::with<tf::LayerNorm{}>::norm>, tf::LayerNorm>);
  static_assert(std::is_same_v<tf::policy_t<Base::with<tf::GELU{}>::activation>, tf::GELU>);
  static_assert(std::is_same_v<tf::policy_t<Base::with<tf::ALiBi{}>::position>, tf::ALiBi>);
  static_assert(Base::with<tf::MHA(6)>::kv_heads == 6);
  static_assert(std::is_same_v<tf::policy_t<Base::with<tf::PostNorm{}>::layout>, tf::PostNorm>);
  static_assert(Base::with<tf::Dims{11, 24, 1, 32, 8}>::dims.vocab == 11);
  static_assert(Base::with<tf::SlidingWindow{5}>::mask.window == 5);
  static_assert(Base::with<tf::SlidingWindow{5}>::with<tf::SlidingWindow{6}>::mask.window == 6);
  static_assert(std::is_same_v<tf::policy_t<Base::with<tf::SlidingWindow{5}>::with<tf::Bidirectional{}>::mask>,
                               tf::Bidirectional>);
  // Everything else stays, and going back gives the same type.
  using Tied = Base::with<tf::TiedEmbeddings{}>;
  static_assert(std::is_same_v<Tied::with<tf::LayerNorm{}>::with<tf::RMSNorm{}>, Tied>);
  static_assert(Tied::with<tf::LayerNorm{}>::tied &&
                std::is_same_v<tf::policy_t<Tied::with<tf::LayerNorm{}>::activation>, tf::SwiGLU>);
  static_assert(
      std::is_same_v<Base::with<tf::SlidingWindow{5}>::with<tf::SlidingWindow{6}>, Base::with<tf::SlidingWindow{6}>>);
}

TEST_CASE("names") {
  CHECK(Base::with<tf::Name{"Base, d_model 48"}>::name == "Base, d_model 48");
  CHECK(Base::with<tf::Name{"a"}>::with<tf::Name{"longer"}>::name == "longer");
  CHECK(Base::with<tf::Name{""}>::name.empty());
}

namespace {
struct Derived : Base::with<tf::Name{"base of a derived one"}> {
  static constexpr std::string_view name = "derived";
};
}  // namespace

TEST_CASE("a struct derived from a composition is one") {
  static_assert(tf::Composition<Derived> && !tf::EncoderDecoderComposition<Derived>);
  CHECK(Derived::name == "derived");
  CHECK(Derived::head_dim == 8);
  static_assert(std::is_same_v<Derived::Layer<0>, Base::with<tf::Name{"base of a derived one"}>>);
  static_assert(std::is_same_v<tf::policy_t<Derived::with<tf::LayerNorm{}>::norm>, tf::LayerNorm>);
  static_assert(!tf::Composition<int> && !tf::Composition<tf::RMSNorm>);
}

TEST_CASE("LocalLayers: of every period layers the first are local") {
  using Gemma = Base::with<tf::LocalLayers<tf::SlidingWindow{5}, tf::RoPE{.theta = 100.f}>{.period = 6, .locals = 5}>;
  static_assert(tf::Composition<Gemma> && Gemma::layer_kinds == 2);
  for (int layer = 0; layer < 13; ++layer) CHECK(Gemma::layer_kind(layer) == ((layer + 1) % 6 == 0 ? 0 : 1));
  static_assert(Gemma::Layer<1>::mask.window == 5 && Gemma::Layer<1>::position.theta == 100.f);
  static_assert(std::is_same_v<tf::policy_t<Gemma::Layer<0>::mask>, tf::Causal> &&
                Gemma::Layer<0>::position.theta == 1e4f);
  // A kind is a uniform composition.
  static_assert(Gemma::Layer<0>::layer_kinds == 1 && Gemma::Layer<1>::layer_kinds == 1);
  static_assert(tf::Composition<Gemma::Layer<0>> && tf::Composition<Gemma::Layer<1>>);

  using Alternating = Base::with<tf::LocalLayers<tf::SlidingWindow{5}>{}>;  // Gemma 2
  CHECK(Alternating::layer_kind(0) == 1);
  CHECK(Alternating::layer_kind(1) == 0);
  CHECK(Alternating::layer_kind(6) == 1);
  using NoLocals = Base::with<tf::LocalLayers<tf::SlidingWindow{5}>{.period = 3, .locals = 0}>;
  for (int layer = 0; layer < 7; ++layer) CHECK(NoLocals::layer_kind(layer) == 0);

  // A layer of its own width: the first one dense and wider, as in models with experts.
  using First = Base::with<tf::LocalLayers<tf::Dims{101, 48, 7, 192, 64}>{.period = 7, .locals = 1}>;
  static_assert(First::Layer<1>::dims.d_ff == 192 && First::Layer<0>::dims.d_ff == 96);
  // Rotated and unrotated layers: Cohere 2, Llama 4.
  using Interleaved =
      Base::with<tf::NoPosition{}>::with<tf::LocalLayers<tf::RoPE{}, tf::Chunked{4}>{.period = 4, .locals = 3}>;
  static_assert(std::is_same_v<tf::policy_t<Interleaved::Layer<0>::position>, tf::NoPosition>);
  static_assert(Interleaved::Layer<1>::mask.chunk == 4);
}

TEST_CASE("a uniform model is its only kind of layers") {
  static_assert(std::is_same_v<Base::Layer<0>, Base>);
  CHECK(Base::layer_kind(5) == 0);
}

namespace {
constexpr tf::Dims decoder_dims{.vocab = 101, .d_model = 48, .n_layers = 2, .d_ff = 64, .max_seq = 32};
using EncoderStack = tf::Transformer<dims, tf::RMSNorm{}, tf::ReLU{}, tf::T5Buckets{.bidirectional = true}, tf::MHA(6),
                                     tf::PreNorm{}, tf::Bidirectional{}>;
using DecoderStack = tf::Transformer<decoder_dims, tf::RMSNorm{}, tf::ReLU{}, tf::T5Buckets{}, tf::MHA(6),
                                     tf::PreNorm{}, tf::TiedEmbeddings{}, tf::Name{"T5"}>;
}  // namespace

TEST_CASE("EncoderDecoder: the encoder loses its head, the decoder gains cross-attention") {
  using Model = tf::EncoderDecoder<EncoderStack, DecoderStack>;
  static_assert(tf::EncoderDecoderComposition<Model> && !tf::Composition<Model> &&
                !tf::EncoderDecoderComposition<Base>);
  static_assert(tf::Composition<Model::Encoder> && tf::Composition<Model::Decoder>);
  CHECK_FALSE(Model::Encoder::has_head);
  CHECK_FALSE(Model::Encoder::cross_attention);
  CHECK(Model::Decoder::has_head);
  CHECK(Model::Decoder::cross_attention);
  CHECK(Model::Decoder::tied);
  CHECK(Model::Decoder::dims.n_layers == 2);
  CHECK(Model::Encoder::position.bidirectional);
  CHECK(Model::name == "T5");
  // Saying it oneself changes nothing.
  using Explicit = tf::EncoderDecoder<EncoderStack::with<tf::NoHead{}>, DecoderStack::with<tf::CrossAttention<>{}>>;
  static_assert(std::is_same_v<Explicit::Encoder, Model::Encoder> && std::is_same_v<Explicit::Decoder, Model::Decoder>);
}

namespace {
template <bool input, bool output, bool sum, bool side_by_side>
struct Layout {
  static constexpr bool norm_input = input, norm_output = output, norm_sum = sum, parallel = side_by_side,
                        final_norm = true;
};
}  // namespace

TEST_CASE("composes: a norm on the sum stands alone") {
  const auto with_layout = []<auto layout>(tf::Fixed<layout>) {
    return tf::composes<dims, tf::RMSNorm{}, tf::SwiGLU{}, tf::RoPE{}, heads, layout>;
  };
  static_assert(with_layout(tf::fixed<tf::PreNorm{}>) && with_layout(tf::fixed<tf::PostNorm{}>));
  static_assert(with_layout(tf::fixed<tf::DoubleNorm{}>) && with_layout(tf::fixed<tf::OutputNorm{}>));
  static_assert(with_layout(tf::fixed<tf::Parallel{}>) && with_layout(tf::fixed<tf::Parallel{.shared_norm = false}>));
  static_assert(with_layout(tf::fixed<Layout<false, false, false, false>{}>));
  static_assert(with_layout(tf::fixed<Layout<true, true, false, true>{}>));
  static_assert(!with_layout(tf::fixed<Layout<true, false, true, false>{}>));
  static_assert(!with_layout(tf::fixed<Layout<false, true, true, false>{}>));
  static_assert(!with_layout(tf::fixed<Layout<false, false, true, true>{}>));
  CHECK(tf::shares_norm<tf::Parallel{}>());
  CHECK_FALSE(tf::shares_norm<tf::Parallel{.shared_norm = false}>());
  CHECK_FALSE(tf::shares_norm<tf::PreNorm{}>());
}

TEST_CASE("composes: every slot must hold its policy") {
  static_assert(tf::composes<dims, tf::RMSNorm{}, tf::SwiGLU{}, tf::RoPE{}, heads, tf::PreNorm{}>);
  static_assert(!tf::composes<dims, tf::SwiGLU{}, tf::RMSNorm{}, tf::RoPE{}, heads, tf::PreNorm{}>);
  static_assert(!tf::composes<dims, 1, tf::SwiGLU{}, tf::RoPE{}, heads, tf::PreNorm{}>);
  static_assert(!tf::composes<dims, tf::RMSNorm{}, tf::RoPE{}, tf::RoPE{}, heads, tf::PreNorm{}>);
  static_assert(!tf::composes<dims, tf::RMSNorm{}, tf::SwiGLU{}, heads, heads, tf::PreNorm{}>);
  static_assert(!tf::composes<dims, tf::RMSNorm{}, tf::SwiGLU{}, tf::RoPE{}, tf::RoPE{}, tf::PreNorm{}>);
  static_assert(!tf::composes<dims, tf::RMSNorm{}, tf::SwiGLU{}, tf::RoPE{}, heads, tf::Causal{}>);
  static_assert(composes_with<tf::Causal{}, tf::TiedEmbeddings{}>);
  static_assert(!composes_with<512>);                                 // no option
  static_assert(!composes_with<tf::LayerNorm{}>);                     // a slot's policy is none
  static_assert(!composes_with<tf::Causal{}, tf::SlidingWindow{3}>);  // two masks
  static_assert(!composes_with<tf::TiedEmbeddings{}, tf::TiedEmbeddings{false}>);
}

TEST_CASE("composes: every rule has compositions on both sides") {
  static_assert(!tf::Transformer<tf::Dims{101, 48, 1, 1, 1}, tf::NoNorm{}, tf::ReLU{}, tf::NoPosition{}, tf::MHA(1),
                                 tf::PreNorm{}>::tied);
  const auto with_dims = []<tf::Dims d>(tf::Fixed<d>) {
    return tf::composes<d, tf::RMSNorm{}, tf::SwiGLU{}, tf::NoPosition{}, tf::MHA(1), tf::PreNorm{}>;
  };
  static_assert(with_dims(tf::fixed<tf::Dims{1, 1, 1, 1, 1}>));
  static_assert(!with_dims(tf::fixed<tf::Dims{0, 1, 1, 1, 1}>) && !with_dims(tf::fixed<tf::Dims{1, 0, 1, 1, 1}>));
  static_assert(!with_dims(tf::fixed<tf::Dims{1, 1, 0, 1, 1}>) && !with_dims(tf::fixed<tf::Dims{1, 1, 1, 0, 1}>));
  static_assert(!with_dims(tf::fixed<tf::Dims{1, 1, 1, 1, 0}>) && !with_dims(tf::fixed<tf::Dims{1, 1, -1, 1, 1}>));

  const auto with_attention = []<tf::GQA a>(tf::Fixed<a>) {
    return tf::composes<dims, tf::RMSNorm{}, tf::SwiGLU{}, tf::RoPE{}, a, tf::PreNorm{}>;
  };
  static_assert(with_attention(tf::fixed<tf::MHA(6)>) && with_attention(tf::fixed<tf::MQA(6)>));
  static_assert(!with_attention(tf::fixed<tf::MHA(7)>) && with_attention(tf::fixed<tf::MHA(7, 8)>));  // d_model 48
  static_assert(!with_attention(tf::fixed<tf::GQA{}>) && !with_attention(tf::fixed<tf::GQA{.heads = 6}>));
  static_assert(!with_attention(tf::fixed<tf::GQA{.heads = 6, .kv_heads = 4}>));
  static_assert(!with_attention(tf::fixed<tf::GQA{.heads = 2, .kv_heads = 6}>));
  static_assert(!with_attention(tf::fixed<tf::GQA{.heads = -6, .kv_heads = -2}>));
  static_assert(!with_attention(tf::fixed<tf::MHA(6, 7)>));  // rotated in pairs
  static_assert(!with_attention(tf::fixed<tf::MHA(6, -8)>));
  static_assert(with_attention(tf::fixed<tf::GQA{.heads = 6, .kv_heads = 2, .softcap = 50.f}>));
  static_assert(!with_attention(tf::fixed<tf::GQA{.heads = 6, .kv_heads = 2, .softcap = -50.f}>));

  const auto with_position = []<auto p>(tf::Fixed<p>) {
    return tf::composes<tf::Dims{101, 50, 7, 96, 64}, tf::RMSNorm{}, tf::SwiGLU{}, p, tf::MHA(5), tf::PreNorm{}>;
  };
  static_assert(with_position(tf::fixed<tf::RoPE{.fraction = .4f}>) &&
                !with_position(tf::fixed<tf::RoPE{.fraction = .5f}>));
  static_assert(!with_position(tf::fixed<tf::RoPE{.fraction = 0.f}>) &&
                !with_position(tf::fixed<tf::RoPE{.fraction = 1.2f}>));
  static_assert(!with_position(tf::fixed<tf::RoPE{.theta = 1.f}>) && !with_position(tf::fixed<tf::RoPE{.theta = 0.f}>));
  static_assert(with_position(tf::fixed<tf::RoPE{.scaling = {.kind = tf::RopeScaling::Kind::linear, .factor = 2.f}}>));
  static_assert(!with_position(tf::fixed<tf::RoPE{.scaling = {.kind = tf::RopeScaling::Kind::yarn, .factor = 0.f}}>));
  static_assert(with_position(tf::fixed<tf::Sinusoidal{}>) && with_position(tf::fixed<tf::LearnedPositions{2}>));
  static_assert(!tf::composes<tf::Dims{101, 45, 7, 96, 64}, tf::RMSNorm{}, tf::SwiGLU{}, tf::Sinusoidal{}, tf::MHA(5),
                              tf::PreNorm{}>);
  static_assert(
      tf::composes<tf::Dims{101, 45, 7, 96, 64}, tf::RMSNorm{}, tf::SwiGLU{}, tf::ALiBi{}, tf::MHA(5), tf::PreNorm{}>);
  static_assert(with_position(tf::fixed<tf::T5Buckets{10, 18}>) &&
                with_position(tf::fixed<tf::T5Buckets{10, 18, true}>));
  static_assert(!with_position(tf::fixed<tf::T5Buckets{11, 18, true}>) &&
                with_position(tf::fixed<tf::T5Buckets{11, 18}>));
  static_assert(!with_position(tf::fixed<tf::T5Buckets{1, 18}>) &&
                !with_position(tf::fixed<tf::T5Buckets{2, 18, true}>));
  static_assert(!with_position(tf::fixed<tf::T5Buckets{32, 16}>) && with_position(tf::fixed<tf::T5Buckets{32, 17}>));

  static_assert(composes_with<tf::SlidingWindow{1}> && !composes_with<tf::SlidingWindow{0}>);
  static_assert(composes_with<tf::Chunked{1}> && !composes_with<tf::Chunked{0}> && !composes_with<tf::Chunked{-4}>);
  using Local = tf::LocalLayers<tf::SlidingWindow{5}>;
  static_assert(composes_with<Local{3, 3}> && composes_with<Local{3, 0}> && !composes_with<Local{3, 4}>);
  static_assert(!composes_with<Local{0, 0}> && !composes_with<Local{3, -1}>);
  static_assert(!composes_with<tf::LocalLayers<tf::SlidingWindow{0}>{}>);  // a rule broken by one kind of layers only
  static_assert(!composes_with<tf::LocalLayers<tf::MHA(7)>{}>);
  static_assert(!composes_with<tf::LocalLayers<512>{}>);
  static_assert(composes_with<tf::LocalLayers<tf::MHA(6), tf::LayerNorm{}, tf::GELU{}>{}>);
  static_assert(!composes_with<tf::LocalLayers<tf::TiedEmbeddings{}>{}> &&
                !composes_with<tf::LocalLayers<tf::NoHead{}>{}>);
  static_assert(!composes_with<tf::LocalLayers<tf::EmbeddingScale{}>{}> &&
                !composes_with<tf::LocalLayers<tf::LogitScale{}>{}>);
  static_assert(!composes_with<tf::LocalLayers<tf::Dims{101, 96, 7, 96, 64}>{}>);
  static_assert(!composes_with<tf::LocalLayers<tf::LearnedPositions{}>{}> &&
                !composes_with<tf::LocalLayers<tf::T5Buckets{}>{}>);
  static_assert(composes_with<tf::LocalLayers<tf::NoPosition{}>{}> && composes_with<tf::LocalLayers<tf::ALiBi{}>{}>);

  static_assert(composes_with<tf::NoHead{}> && !composes_with<tf::NoHead{}, tf::TiedEmbeddings{}>);
  static_assert(!composes_with<tf::NoHead{}, tf::LogitScale{}> && !composes_with<tf::NoHead{}, tf::FinalSoftcap{}>);
  static_assert(!composes_with<tf::NoHead{}, tf::Biases{.head = true}> && composes_with<tf::NoHead{}, tf::Biases{}>);
  static_assert(composes_with<tf::QKNorm<tf::RMSNorm{}>{}> && !composes_with<tf::QKNorm<tf::RMSNorm{.eps = -1.f}>{}>);
  static_assert(!composes_with<tf::EmbeddingNorm<tf::LayerNorm{.eps = -1.f}>{}>);
  static_assert(!tf::composes<dims, tf::RMSNorm{.eps = -1e-5f}, tf::SwiGLU{}, tf::RoPE{}, heads, tf::PreNorm{}>);
  static_assert(composes_with<tf::FinalSoftcap{0.f}> && !composes_with<tf::FinalSoftcap{-1.f}>);
}
