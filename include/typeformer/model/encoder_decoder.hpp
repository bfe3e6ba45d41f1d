/// The network of two stacks as the block diagram:
///
///   source ids -> embedding -> encoder block x n -> final norm -----+  [S, d_model]
///                                                                   v
///   target ids -> embedding -> decoder block (attention, cross-attention, feed-forward) x n
///              -> final norm -> head -> logits
///
/// and for training the same upward. S, T: tokens of all source and target sequences together.
#pragma once
#include "typeformer/model/transformer.hpp"

namespace typeformer::inline TYPEFORMER_ABI {

/// What a decoder remembers between calls: its own keys and values, and those of the encoded sources, layer by layer.
/// reset forgets the targets and keeps the sources; encode replaces both.
template <EncoderDecoderComposition M, class Device, class A = float>
class EncoderDecoderState : public KVCache<typename M::Decoder, Device, A> {
 public:
  using Decoder = typename M::Decoder;
  template <class W>
  explicit EncoderDecoderState(const Model<M, Device, W>& model, const StateOptions& options = {})
      : KVCache<Decoder, Device, A>(model.device(), options),
        source_lengths_(static_cast<std::size_t>(options.sequences), 0) {
    detail::check_capacity<Decoder>(this->capacity());
  }
  /// Of target and source together: not offered, since sources are encoded together. Encode again instead.
  void copy(int from, int to) = delete;

  /// Source tokens of each sequence; 0 before encode.
  std::span<const int> source_lengths() const { return source_lengths_; }

  // --- for the passes of model/ ---
  void set_source(Device& on, std::span<const int> lengths, std::int64_t tokens) {
    std::vector<Buffer<Device, A>> keys, values;  // all of them before anything changes
    for (int layer = 0; layer < Decoder::dims.n_layers; ++layer)
      detail::with_layer<Decoder>(layer, [&]<class L, int>() {
        const auto size = static_cast<std::size_t>(tokens) * static_cast<std::size_t>(L::kv_width);
        keys.emplace_back(on, size), values.emplace_back(on, size);
      });
    source_lengths_.assign(lengths.begin(), lengths.end());
    source_tokens_ = tokens;
    source_keys_ = std::move(keys);
    source_values_ = std::move(values);
    this->reset();
  }
  A* source_keys(int layer) { return source_keys_[static_cast<std::size_t>(layer)].data(); }
  A* source_values(int layer) { return source_values_[static_cast<std::size_t>(layer)].data(); }
  std::int64_t source_tokens() const { return source_tokens_; }
  detail::PassState<Device, A>& passes() { return passes_; }

 private:
  std::vector<int> source_lengths_;
  std::int64_t source_tokens_ = 0;
  std::vector<Buffer<Device, A>> source_keys_, source_values_;
  detail::PassState<Device, A> passes_;
};

template <EncoderDecoderComposition M, class Device, class W>
EncoderDecoderState(const Model<M, Device, W>&, const StateOptions&)
    -> EncoderDecoderState<M, Device, activation_t<Device, W>>;
template <EncoderDecoderComposition M, class Device, class W>
EncoderDecoderState(const Model<M, Device, W>&) -> EncoderDecoderState<M, Device, activation_t<Device, W>>;

namespace detail {

template <class M, class Device, class W>
Stack<typename M::Encoder, Device, W> encoder_of(const Model<M, Device, W>& model) {
  return {model, "encoder.", model.encoder_tables(), model.encoder_position_rows()};
}
template <class M, class Device, class W>
Stack<typename M::Decoder, Device, W> decoder_of(const Model<M, Device, W>& model) {
  return {model, "decoder.", model.tables(), model.position_rows()};
}

inline void check_pair(std::string_view operation, const Batch& source, const Batch& target) {
  if (source.lengths.size() != target.lengths.size())
    throw Error(operation, "target", std::to_string(source.lengths.size()) + " sequences, one per source",
                std::to_string(target.lengths.size()));
}

/// A whole pass through both stacks, without a cache.
template <class M, class Device, class A>
struct PairPass {
  PassArrays<Device, A> source, target;
  PassMemory<Device> source_memory, target_memory;
  StackActivations<A> encoder, decoder;

  PassTokens<A> target_of_kind(int kind) const {
    PassTokens<A> tokens = target.of_kind(kind);
    tokens.source_tokens = source.tokens();
    tokens.source = encoder.normed;
    return tokens;
  }
  template <class W, class Observer>
  void run(std::string_view operation, const Model<M, Device, W>& model, const Batch& from, const Batch& to, bool keep,
           Observer& observer) {
    using Encoder = typename M::Encoder;
    using Decoder = typename M::Decoder;
    check_pair(operation, from, to);
    check_batch(operation, from, Encoder::dims.vocab);
    check_batch(operation, to, Decoder::dims.vocab);
    check_positions<Encoder>(operation, from);
    check_positions<Decoder>(operation, to);
    source.set(model.device(), from, Encoder::layer_kinds);
    target.set(model.device(), to, Decoder::layer_kinds, from.lengths);
    encoder = stack_activations<Encoder, A>(model.device(), source_memory, source.tokens(), 0, keep, false);
    decoder =
        stack_activations<Decoder, A>(model.device(), target_memory, target.tokens(), source.tokens(), keep, false);
    encoder_of(model).forward(
        source, encoder, static_cast<KVCache<Encoder, Device, A>*>(nullptr),  // [S, d_model]
        [&](int kind) { return source.of_kind(kind); }, no_source, observer);
    decoder_of(model).forward(
        target, decoder, static_cast<KVCache<Decoder, Device, A>*>(nullptr),  // [T, d_model]
        [&](int kind) { return target_of_kind(kind); }, no_source, observer);
  }
};

}  // namespace detail

/// Logits of every target position, [T, vocab]. Sequence s of the target reads sequence s of the source.
template <EncoderDecoderComposition M, class Device, Storage W, class Observer = NoObserver>
Logits forward(const Model<M, Device, W>& model, const Batch& source, const Batch& target, Observer&& observer = {}) {
  constexpr int vocab = M::Decoder::dims.vocab;
  detail::PairPass<M, Device, activation_t<Device, W>> pass;
  pass.run("forward", model, source, target, false, observer);  // [T, d_model]
  Buffer<Device, float> logits(model.device(), target.ids.size() * static_cast<std::size_t>(vocab));
  detail::head_of(model).logits(logits.data(), pass.decoder.normed, pass.target.tokens());  // [T, vocab]
  observer(Observed<float>{"", "logits", -1, logits.data(), pass.target.tokens(), vocab});
  return {detail::to_host(model.device(), logits.data(), pass.target.tokens() * vocab), vocab};
}

/// The mean cross-entropy of the labels of the target (see loss of one stack).
template <EncoderDecoderComposition M, class Device, Storage W>
float loss(const Model<M, Device, W>& model, const Batch& source, const Batch& target,
           std::span<const std::int32_t> labels, const LossOptions& options = {}) {
  detail::check_labels("loss", labels, target.ids.size(), M::Decoder::dims.vocab, options);
  detail::PairPass<M, Device, activation_t<Device, W>> pass;
  NoObserver observer;
  pass.run("loss", model, source, target, false, observer);
  const Buffer<Device, std::int32_t> targets(model.device(), labels);
  return detail::head_of(model).loss(pass.decoder.normed, targets.data(), labels, options, nullptr, nullptr, nullptr);
}

/// The loss, and its gradients through both stacks added to `gradients`.
template <EncoderDecoderComposition M, class Device, Storage W, class Observer = NoObserver>
float loss_and_gradients(const Model<M, Device, W>& model, const Batch& source, const Batch& target,
                         std::span<const std::int32_t> labels, Gradients<M, Device>& gradients,
                         const LossOptions& options = {}, Observer&& observer = {}) {
  using A = activation_t<Device, W>;
  detail::check_labels("loss_and_gradients", labels, target.ids.size(), M::Decoder::dims.vocab, options);
  detail::check_gradients("loss_and_gradients", model, gradients);
  Device& on = model.device();
  detail::PairPass<M, Device, A> pass;
  pass.run("loss_and_gradients", model, source, target, true, observer);
  const Buffer<Device, std::int32_t> targets(on, labels);
  const auto in_encoder = gradients.stack("encoder."), in_decoder = gradients.stack("decoder.");
  const auto shared = gradients.stack("");
  float* dtable = shared.matrix(Tensor::token_embeddings);
  const auto d_model = static_cast<std::size_t>(M::Decoder::dims.d_model);
  Buffer<Device, A> dtarget(on, target.ids.size() * d_model), dsource(on, source.ids.size() * d_model);
  const auto bytes =
      std::max(detail::backward_bytes<typename M::Encoder, A>(pass.source.tokens(), 0),
               detail::backward_bytes<typename M::Decoder, A>(pass.target.tokens(), pass.source.tokens()));
  Buffer<Device, std::byte> scratch(on, static_cast<std::size_t>(bytes));
  const float value = detail::head_of(model).loss(pass.decoder.normed, targets.data(), labels, options, dtarget.data(),
                                                  M::Decoder::tied ? dtable : shared.matrix(Tensor::head_weight),
                                                  shared.vector(Tensor::head_bias));
  detail::decoder_of(model).backward(
      pass.target, pass.decoder, [&](int kind) { return pass.target_of_kind(kind); }, in_decoder, dtable,
      dtarget.data(), dsource.data(), scratch.data(), observer);
  detail::encoder_of(model).backward(
      pass.source, pass.encoder, [&](int kind) { return pass.source.of_kind(kind); }, in_encoder, dtable,
      dsource.data(), nullptr, scratch.data(), observer);
  return value;
}

/// Reads the sources into a state: runs the encoder and keeps the keys and values that each decoder layer makes of its
/// output. source.lengths has one entry per sequence of the state. Forgets what the state held.
template <EncoderDecoderComposition M, class Device, Storage W, class Observer = NoObserver>
void encode(const Model<M, Device, W>& model, EncoderDecoderState<M, Device, activation_t<Device, W>>& state,
            const Batch& source, Observer&& observer = {}) {
  using Encoder = typename M::Encoder;
  using Decoder = typename M::Decoder;
  detail::check_device("encode", model, state);
  detail::check_batch("encode", source, Encoder::dims.vocab);
  detail::check_positions<Encoder>("encode", source);
  if (static_cast<int>(source.lengths.size()) != state.sequences())
    throw Error("encode", "source", std::to_string(state.sequences()) + " sequences, as the state has",
                std::to_string(source.lengths.size()));
  using A = activation_t<Device, W>;
  Device& on = model.device();
  detail::PassArrays<Device, A> pass;
  pass.set(on, source, Encoder::layer_kinds);
  auto a = detail::stack_activations<Encoder, A>(on, state.passes().activations, pass.tokens(), 0, false, false);
  detail::encoder_of(model).forward(
      pass, a, static_cast<KVCache<Encoder, Device, A>*>(nullptr),  // [S, d_model]
      [&](int kind) { return pass.of_kind(kind); }, detail::no_source, observer);
  state.set_source(on, source.lengths, pass.tokens());
  const auto w = model.weights().stack("decoder.");
  for (int layer = 0; layer < Decoder::dims.n_layers; ++layer)
    detail::with_layer<Decoder>(layer, [&]<class L, int>() {  // [S, kv_width]
      const auto project = [&](A* y, Tensor weight, Tensor bias) {
        linear(on, LinearArgs<A, W>{.y = y,
                                    .x = a.normed,
                                    .w = w.matrix(weight, layer),
                                    .bias = w.vector(bias, layer),
                                    .rows = pass.tokens(),
                                    .in = L::dims.d_model,
                                    .out = L::kv_width});
      };
      project(state.source_keys(layer), Tensor::cross_k_weight, Tensor::cross_k_bias);
      project(state.source_values(layer), Tensor::cross_v_weight, Tensor::cross_v_bias);
    });
}

namespace detail {

template <class M, class Device, class W, class Observer>
Extended extend_state(const Model<M, Device, W>& model, EncoderDecoderState<M, Device, activation_t<Device, W>>& state,
                      const Batch& batch, std::span<const SampleRule> rules, Observer& observer) {
  using Decoder = typename M::Decoder;
  using A = activation_t<Device, W>;
  check_device("extend", model, state);
  for (std::size_t s = 0; s < batch.lengths.size() && s < state.source_lengths().size(); ++s)
    if (batch.lengths[s] > 0 && state.source_lengths()[s] == 0)
      throw Error("extend", "state", "a source for sequence " + std::to_string(s) + ": call encode first", "none");
  Extended result = nothing_extended<Decoder>(state.sequences(), rules);
  KVCache<Decoder, Device, A>& cache = state;
  extend_in_chunks(cache, batch, [&](auto first, auto count) {
    state.passes().arrays.set(model.device(), batch, first, count, cache, rules, state.source_lengths());
    const auto per_kind = [&](int kind) {
      PassTokens<A> tokens = state.passes().arrays.of_kind(kind);
      tokens.source_tokens = state.source_tokens();
      return tokens;
    };
    const auto cached_source = [&](int layer, BlockActivations<A>& block) {
      block.cross_k = state.source_keys(layer);
      block.cross_v = state.source_values(layer);
    };
    const auto forward = [&](StackActivations<A>& a) {
      decoder_of(model).forward(state.passes().arrays, a, &cache, per_kind, cached_source, observer);
    };
    std::vector<const void*> memory = memory_of(model);
    for (int layer = 0; layer < Decoder::dims.n_layers; ++layer)
      memory.insert(memory.end(), {state.source_keys(layer), state.source_values(layer)});
    extend_pass(head_of(model), state, std::move(memory), forward, result, observer);
  });
  return result;
}

}  // namespace detail

/// Appends target tokens; see extend of one stack. Throws Error for a sequence without an encoded source.
template <EncoderDecoderComposition M, class Device, Storage W, class Observer = NoObserver>
Logits extend(const Model<M, Device, W>& model, EncoderDecoderState<M, Device, activation_t<Device, W>>& state,
              const Batch& batch, Observer&& observer = {}) {
  return detail::extend_state(model, state, batch, {}, observer).logits;
}

/// extend, and the sampled token to come after each sequence; see extend_and_sample of one stack.
template <EncoderDecoderComposition M, class Device, Storage W, class Observer = NoObserver>
std::vector<std::int32_t> extend_and_sample(const Model<M, Device, W>& model,
                                            EncoderDecoderState<M, Device, activation_t<Device, W>>& state,
                                            const Batch& batch, std::span<const SampleRule> rules,
                                            Observer&& observer = {}) {
  detail::check_rules(rules, state.sequences(), M::Decoder::dims.vocab);
  return detail::tokens_of(detail::extend_state(model, state, batch, rules, observer).ids, batch);
}

}  // namespace typeformer
