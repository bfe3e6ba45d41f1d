// Encoders and encoder-decoders against the judge: BERT, BLOOM (ALiBi, prefix), T5 and the Transformer of 2017.
#include "model/design_space.hpp"

using namespace design_space;

TEST_CASE("bert: post-norm, both directions, a norm after the embedding") {
  auto network = design_space::network("bert");
  network.config.token_types = 0;  // token types come with BERT's own family
  for (auto& sequence : network.batch) sequence.types.clear();
  using M =
      GPT2::with<Dims{.vocab = 11, .d_model = 8, .n_layers = 2, .d_ff = 12, .max_seq = 9}>::with<LearnedPositions{}>::
          with<PostNorm{}>::with<Bidirectional{}>::with<EmbeddingNorm<layer_norm>{}>::with<Biases{.head = true}>;
  check<M>(network);
}
TEST_CASE("bloom: ALiBi on three heads, squared ReLU, a prefix that sees itself") {
  const auto network = design_space::network("bloom");
  using M = GPT2::with<ALiBi{}>::with<GQA{.heads = 3, .kv_heads = 3, .head_dim = 2}>::with<SquaredReLU{}>::with<
      EmbeddingNorm<layer_norm>{}>::with<PrefixCausal{}>;
  check<M>(network);
}
TEST_CASE("t5: buckets in both stacks, a gated encoder of three layers, a scaled tied head") {
  constexpr GQA heads{.heads = 4, .kv_heads = 2, .head_dim = 4, .scale = 1.f};
  using Decoder =
      Transformer<Dims{.vocab = 11, .d_model = 8, .n_layers = 2, .d_ff = 12, .max_seq = 16}, rms, ReLU{},
                  T5Buckets{.buckets = 6, .max_distance = 5}, heads, PreNorm{}, TiedEmbeddings{}, LogitScale{}>;
  using Encoder =
      Transformer<Dims{.vocab = 11, .d_model = 8, .n_layers = 3, .d_ff = 7, .max_seq = 16}, rms, GeGLU{},
                  T5Buckets{.buckets = 6, .max_distance = 5, .bidirectional = true}, heads, PreNorm{}, Bidirectional{}>;
  check<EncoderDecoder<Encoder, Decoder>>("t5");
}
TEST_CASE("transformer 2017: post-norm, sinusoids, scaled embeddings, a head bias") {
  using Decoder = Transformer<Dims{.vocab = 11, .d_model = 8, .n_layers = 2, .d_ff = 12, .max_seq = 16}, layer_norm,
                              GELUTanh{}, Sinusoidal{}, GQA{.heads = 4, .kv_heads = 4, .head_dim = 2}, PostNorm{},
                              Biases{.head = true}, TiedEmbeddings{}, EmbeddingScale{}>;
  using Encoder = Decoder::with<Bidirectional{}>::with<TiedEmbeddings{false}>::with<Biases{}>;
  check<EncoderDecoder<Encoder, Decoder>>("transformer 2017");
}
