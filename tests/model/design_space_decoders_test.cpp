// Decoders of the design space against the judge: Llama's block with z-loss, GPT-2, OLMo 2 and OLMo 1 like networks.
#include "model/design_space.hpp"

using namespace design_space;

TEST_CASE("llama, z-loss") { check<Small>("llama, z-loss"); }
TEST_CASE("gpt2, smoothing: learned positions, LayerNorm, biases") { check<GPT2>("gpt2, smoothing"); }
TEST_CASE("olmo2: norms on the sublayers' outputs, q/k norm over all heads, llama3 scaling") {
  using M = Small::with<OutputNorm{}>::with<QKNorm<rms>{.width = QKWidth::all_heads}>::with<RoPE{
      .theta = 100.f, .scaling = {.kind = RopeScaling::Kind::llama3, .factor = 4.f, .original_context = 16}}>;
  check<M>("olmo2");
}
TEST_CASE("olmo1: norms without parameters, q/k norm after RoPE, chunks, yarn, a gated ELU") {
  auto network = design_space::network("olmo1");
  network.config.stack.attention.clamp.reset();  // the library has no clamp of q, k and v yet
  using M = Small::with<LayerNorm{.eps = 1e-2f, .gain = Gain::none, .bias = false}>::with<Gated<ELU>{}>::with<
      QKNorm<RMSNorm{.eps = 1e-2f, .gain = Gain::none}>{.after_rope = true}>::with<Chunked{3}>::with<RoPE{
      .theta = 100.f,
      .scaling = {.kind = RopeScaling::Kind::yarn, .factor = 4.f, .original_context = 16, .beta_fast = 2.f}}>;
  check<M>(network);
}
