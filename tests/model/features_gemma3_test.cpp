// Changing any one thing in the alias of the tiny Gemma 3 makes it miss HuggingFace's logits.
#include "model/features.hpp"

using namespace features;
using tiny::Gemma3;
using Scaled = RopeScaling;

TEST_CASE("gemma3: norms show") {
  const harness::GoldenCase golden("gemma3");
  CHECK(logit_error<Gemma3>(golden) < tolerance::tiny_logits_ceiling);
  must_show<Gemma3::with<RMSNorm{.eps = .01f}>>(golden, "w for 1 + w in the blocks' norms");
  must_show<Gemma3::with<RMSNorm{.eps = .009f, .gain = Gain::one_plus}>>(golden, "eps 0.009 for 0.01");
  must_show<Gemma3::with<QKNorm<RMSNorm{.eps = .01f}>{}>>(golden, "w for 1 + w in the q/k norm");
  must_show<Gemma3::with<QKNorm<RMSNorm{.eps = .009f, .gain = Gain::one_plus}>{}>>(golden, "eps 0.009 in the q/k norm");
  must_show<Gemma3::with<QKNorm<NoNorm{}>{}>>(golden, "no q/k norm");
  must_show<Gemma3::with<QKNorm<tiny::gemma_norm>{.after_rope = true}>>(golden, "q/k norm after RoPE");
  must_show<Gemma3::with<PreNorm{}>>(golden, "pre-norm for double norm");
  must_show<Gemma3::with<OutputNorm{}>>(golden, "norms on the outputs alone");
}
TEST_CASE("gemma3: layers, positions and scales show") {
  const harness::GoldenCase golden("gemma3");
  must_show<Gemma3::with<LocalLayers<SlidingWindow{6}, RoPE{.theta = 100.f}>{.period = 6, .locals = 5}>>(
      golden, "window 6 for 5");
  must_show<Gemma3::with<LocalLayers<SlidingWindow{5}, RoPE{.theta = 90.f}>{.period = 6, .locals = 5}>>(
      golden, "local theta 90 for 100");
  must_show<Gemma3::with<LocalLayers<SlidingWindow{5}, RoPE{.theta = 100.f}>{.period = 5, .locals = 4}>>(
      golden, "pattern 4:1 for 5:1");
  must_show<Gemma3::with<LocalLayers<SlidingWindow{5}>{.period = 6, .locals = 5}>>(golden,
                                                                                   "the global theta everywhere");
  must_show<Gemma3::with<RoPE{.theta = 2500.f, .scaling = {.kind = Scaled::Kind::linear, .factor = 8.f}}>>(
      golden, "global theta 2500 for 3000");
  must_show<Gemma3::with<RoPE{.theta = 3000.f}>>(golden, "no linear factor on global layers");
  must_show<Gemma3::with<GQA{.heads = 4, .kv_heads = 2, .head_dim = 16}>>(golden, "scale 16^-1/2 for 24^-1/2");
  must_show<Gemma3::with<GeGLU{}>>(golden, "erf for tanh in GELU");
  must_show<Gemma3::with<EmbeddingScale{1.f}>>(golden, "embeddings not times sqrt(d_model)");
  must_show<Gemma3::with<FinalSoftcap{5.1f}>>(golden, "final soft-cap 5.1 for 5");
}
