// Parallel blocks, layer patterns and double norms against the judge: GPT-NeoX, Cohere and Gemma like networks.
#include "model/design_space.hpp"

using namespace design_space;

TEST_CASE("neox: two norms in parallel, two thirds of each head turn, a head bias") {
  using M =
      GPT2::with<GQA{.heads = 4, .kv_heads = 4, .head_dim = 6}>::with<RoPE{.theta = 50.f, .fraction = 2.f / 3}>::with<
          Parallel{.shared_norm = false}>::with<GELU{}>::with<Biases{.head = true}>::with<TiedEmbeddings{false}>;
  check<M>("neox");
}
using Phi = GPT2::with<GQA{.heads = 4, .kv_heads = 4, .head_dim = 6}>::with<RoPE{
    .theta = 50.f, .fraction = 2.f / 3}>::with<Parallel{}>::with<Biases{.head = true}>::with<TiedEmbeddings{false}>;
TEST_CASE("phi: one norm, one product with the biases of both branches") { check<Phi>("phi"); }
TEST_CASE("gpt-j: one norm, biases of the feed-forward network alone") {
  check<Phi::with<Biases{.qkv = false, .output = false, .head = true}>>("gpt-j");
}
TEST_CASE(
    "cohere: one norm for both branches, adjacent pairs, sliding layers with RoPE and full ones without, per-head q/k "
    "norm") {
  constexpr LayerNorm gain_only{.eps = 1e-2f, .bias = false};
  using M = Small::with<Parallel{}>::with<gain_only>::with<NoPosition{}>::with<QKNorm<gain_only>{
      .width = QKWidth::head_own_weights}>::with<TiedEmbeddings{}>::with<LogitScale{.25f}>::
      with<LocalLayers<SlidingWindow{2}, RoPE{.theta = 20.f, .pairs = Pairs::adjacent}>{.period = 2, .locals = 1}>;
  check<M>("cohere");
}
TEST_CASE("gemma: double norm, 1 + w, soft-caps, a scale of its own, two kinds of layers") {
  constexpr RMSNorm one_plus{.eps = 1e-2f, .gain = Gain::one_plus};
  using M =
      Transformer<dims, one_plus, GeGLUTanh{}, RoPE{.scaling = {.kind = RopeScaling::Kind::linear, .factor = 8.f}},
                  GQA{.heads = 4, .kv_heads = 2, .head_dim = 4, .scale = .7f, .softcap = 2.f}, DoubleNorm{},
                  QKNorm<one_plus>{}, TiedEmbeddings{}, EmbeddingScale{}, FinalSoftcap{3.f},
                  LocalLayers<SlidingWindow{3}, RoPE{}>{.period = 2, .locals = 1}>;
  check<M>("gemma");
}
TEST_CASE("quick gelu in parallel, no norm at all") {
  using M = Small::with<NoNorm{}>::with<Gated<QuickGELU>{}>::with<NoPosition{}>::with<Parallel{
      .shared_norm = false}>::with<Biases{.qkv = false, .output = false}>;
  check<M>("quick gelu");
}
