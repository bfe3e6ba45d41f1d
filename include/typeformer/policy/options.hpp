/// What may follow the slots of a Transformer, in any order. Each option is recognized by its own concept.
#pragma once
#include <concepts>
#include <string_view>
#include <type_traits>

#include "typeformer/core/fixed.hpp"
#include "typeformer/core/math.hpp"
#include "typeformer/policy/mask.hpp"
#include "typeformer/policy/norm.hpp"

namespace typeformer::inline TYPEFORMER_ABI {

/// The head's matrix is the embedding table. Press & Wolf 2016, arXiv:1608.05859.
struct TiedEmbeddings {
  bool tied = true;
};

/// The stack ends with hidden states: no head (encoders).
struct NoHead {
  bool no_head = true;
};

/// Which linear maps add a bias: query, key and value; the attention's output; the feed-forward network; the head.
struct Biases {
  bool qkv = true, output = true, feed_forward = true, head = false;
};

/// Token embeddings are multiplied by `embedding_factor`; 0: by sqrt(d_model).
struct EmbeddingScale {
  float embedding_factor = 0.f;
  constexpr float of(int d_model) const {
    return embedding_factor != 0.f ? embedding_factor : static_cast<float>(constant_sqrt(d_model));
  }
};

/// A norm right after the embedding (BLOOM, BERT).
template <auto Norm>
struct EmbeddingNorm {
  static constexpr auto embedding_norm = Norm;
};

/// Logits are multiplied by `logit_factor` (Cohere); 0: by 1 / sqrt(d_model) (T5 with tied embeddings).
struct LogitScale {
  float logit_factor = 0.f;
  constexpr float of(int d_model) const {
    return logit_factor != 0.f ? logit_factor : static_cast<float>(1 / constant_sqrt(d_model));
  }
};

/// Logits become cap * tanh(logits / cap) (Gemma 2).
struct FinalSoftcap {
  float final_cap = 30.f;
};

/// What describe, errors and benchmarks call the model.
template <std::size_t N>
struct Name {
  FixedString<N> name;  // no constructor: nvcc writes the value out by members when it re-emits a type
};
template <std::size_t N>
Name(const char (&)[N]) -> Name<N>;

/// What one kind of layer has in place of the model's slots and options.
template <auto... News>
struct Changes {};

/// Some layers differ: of every `period` layers the first `locals` take the given slots and options in place of the
/// model's. Gemma 3: `LocalLayers<SlidingWindow{512}, RoPE{.theta = 1e4f}>{.period = 6, .locals = 5}`.
template <auto... Replacements>
struct LocalLayers {
  int period = 2, locals = 1;
  static constexpr int kinds = sizeof...(Replacements) > 0 ? 2 : 1;
  /// 0: as the model says; 1: with the replacements.
  constexpr int kind(int index) const { return kinds == 2 && index % period < locals ? 1 : 0; }
  template <int of_kind>
  using changes = std::conditional_t<of_kind == 1, Changes<Replacements...>, Changes<>>;
};
/// All layers alike.
using UniformLayers = LocalLayers<>;

/// Between attention and feed-forward the layers read the encoder's output. EncoderDecoder adds it to its decoder.
template <auto Mask = Bidirectional{}>
struct CrossAttention {
  bool cross_attention = true;
  static constexpr auto cross_mask = Mask;  ///< which source positions a target position sees
};

// An option is recognized by its members alone, so that a user's own struct with the same members is one too.

/// The head reads the embedding table: TiedEmbeddings.
template <class P>
concept TieOption = requires(const P p) {
  { p.tied } -> std::convertible_to<bool>;
};
/// The model ends with its hidden states: NoHead.
template <class P>
concept HeadOption = requires(const P p) {
  { p.no_head } -> std::convertible_to<bool>;
};
/// Which matrix products add a bias: Biases.
template <class P>
concept BiasOption = requires(const P p) {
  { p.qkv } -> std::convertible_to<bool>;
  { p.output } -> std::convertible_to<bool>;
  { p.feed_forward } -> std::convertible_to<bool>;
  { p.head } -> std::convertible_to<bool>;
};
/// Embeddings are multiplied by a number: EmbeddingScale.
template <class P>
concept EmbeddingScaleOption = requires(const P p) {
  { p.embedding_factor } -> std::convertible_to<float>;
};
/// Embeddings are normalized: EmbeddingNorm.
template <class P>
concept EmbeddingNormOption = requires {
  requires NormPolicy<std::remove_cvref_t<decltype(P::embedding_norm)>>;
};
/// Logits are multiplied by a number: LogitScale.
template <class P>
concept LogitScaleOption = requires(const P p) {
  { p.logit_factor } -> std::convertible_to<float>;
};
/// Logits are capped: FinalSoftcap.
template <class P>
concept FinalSoftcapOption = requires(const P p) {
  { p.final_cap } -> std::convertible_to<float>;
};
/// Layers attend to an encoder's output: CrossAttention.
template <class P>
concept CrossAttentionOption = requires(const P p) {
  { p.cross_attention } -> std::convertible_to<bool>;
  requires MaskPolicy<std::remove_cvref_t<decltype(P::cross_mask)>>;
};
/// The model has a name: Name.
template <class P>
concept NameOption = requires(const P p) {
  std::string_view(p.name);
};
/// A pattern over layers: how many kinds there are, which kind a layer is (constexpr; periodic or not), and the
/// Changes<...> of each kind to the model.
template <class P>
concept LayerPattern = requires(const P p, int layer) {
  { P::kinds } -> std::convertible_to<int>;
  { p.kind(layer) } -> std::same_as<int>;
  typename P::template changes<0>;
};

}  // namespace typeformer
