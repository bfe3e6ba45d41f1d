// Changing any one thing in the alias of the tiny Llama makes it miss HuggingFace's logits.
#include "model/features.hpp"

using namespace features;
using tiny::Llama;

TEST_CASE("llama: every feature shows") {
  const harness::GoldenCase golden("llama");
  CHECK(logit_error<Llama>(golden) < tolerance::tiny_logits_ceiling);
  must_show<Llama::with<LayerNorm{.eps = .02f}>>(golden, "LayerNorm for RMSNorm");
  must_show<Llama::with<RMSNorm{.eps = .02f, .gain = Gain::one_plus}>>(golden, "1 + w for w");
  must_show<Llama::with<RMSNorm{.eps = .02f, .gain = Gain::none}>>(golden, "no w");
  must_show<Llama::with<NoNorm{}>>(golden, "no norm");
  must_show<Llama::with<RMSNorm{.eps = .018f}>>(golden, "eps 0.018 for 0.02");
  must_show<Llama::with<RoPE{.theta = 450.f}>>(golden, "theta 450 for 500");
  must_show<Llama::with<RoPE{.theta = 500.f, .pairs = Pairs::adjacent}>>(golden, "adjacent pairs for halves");
  must_show<Llama::with<RoPE{.theta = 500.f, .fraction = .5f}>>(golden, "half of each head turns");
  must_show<Llama::with<GQA{.heads = 6, .kv_heads = 2, .head_dim = 16, .scale = .24f}>>(golden, "scale 0.24 for 0.25");
  must_show<Llama::with<GQA{.heads = 6, .kv_heads = 2, .head_dim = 16, .softcap = 20.f}>>(golden, "a soft-cap of 20");
  must_show<Llama::with<GeGLU{}>>(golden, "GELU for SiLU in the gate");
}
TEST_CASE("llama: every placement and mask shows") {
  const harness::GoldenCase golden("llama");
  must_show<Llama::with<PostNorm{}>>(golden, "post-norm");
  must_show<Llama::with<DoubleNorm{}>>(golden, "double norm");
  must_show<Llama::with<Parallel{.shared_norm = false}>>(golden, "parallel blocks");
  must_show<Llama::with<SlidingWindow{16}>>(golden, "a window of 16");
  must_show<Llama::with<Bidirectional{}>>(golden, "no causal mask");
  must_show<Llama::with<QKNorm<RMSNorm{.gain = Gain::none}>{}>>(golden, "q/k norm");
  must_show<Llama::with<Biases{.qkv = false}>>(golden, "no bias on q, k, v");
  must_show<Llama::with<Biases{.output = false}>>(golden, "no bias on the output");
  must_show<Llama::with<Biases{.feed_forward = false}>>(golden, "no bias in the feed-forward network");
  must_show<Llama::with<EmbeddingScale{1.01f}>>(golden, "embeddings times 1.01");
  must_show<Llama::with<LogitScale{1.01f}>>(golden, "logits times 1.01");
}
