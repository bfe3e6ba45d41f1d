// Changing any one thing in the alias of the tiny T5 makes it miss HuggingFace's logits.
#include "model/features.hpp"

using namespace features;
using tiny::T5Decoder;
using tiny::T5Encoder;

template <class Encoder, class Decoder>
using Pair = EncoderDecoder<Encoder, Decoder>;

TEST_CASE("t5: every feature shows") {
  const harness::GoldenCase golden("t5");
  CHECK(logit_error<tiny::T5>(golden) < tolerance::tiny_logits_ceiling);
  must_show<Pair<T5Encoder, T5Decoder::with<T5Buckets{.buckets = 8, .max_distance = 24}>>>(
      golden, "decoder buckets up to 24 for 20");
  must_show<Pair<T5Encoder, T5Decoder::with<T5Buckets{.buckets = 8, .max_distance = 20, .bidirectional = true}>>>(
      golden, "bidirectional buckets in the decoder");
  must_show<Pair<T5Encoder::with<T5Buckets{.buckets = 8, .max_distance = 20}>, T5Decoder>>(
      golden, "causal buckets in the encoder");
  must_show<Pair<T5Encoder::with<NoPosition{}>, T5Decoder>>(golden, "no bias in the encoder");
  must_show<Pair<T5Encoder::with<Causal{}>, T5Decoder>>(golden, "a causal encoder");
  must_show<Pair<T5Encoder, T5Decoder::with<CrossAttention<Causal{}>{}>>>(golden, "a causal mask in cross-attention");
  must_show<Pair<T5Encoder, T5Decoder::with<GQA{.heads = 4, .kv_heads = 4, .head_dim = 12}>>>(
      golden, "a score scale of 12^-1/2");
  must_show<Pair<T5Encoder, T5Decoder::with<LogitScale{1.f}>>>(golden, "logits not times d_model^-1/2");
  must_show<Pair<T5Encoder::with<RMSNorm{.eps = .009f}>, T5Decoder>>(golden, "eps 0.009 for 0.01 in the encoder");
  must_show<Pair<T5Encoder, T5Decoder::with<LayerNorm{.eps = .01f, .bias = false}>>>(golden,
                                                                                     "LayerNorm in the decoder");
  must_show<Pair<T5Encoder, T5Decoder::with<GELU{}>>>(golden, "GELU for ReLU in the decoder");
}
