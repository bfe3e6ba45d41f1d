/// The passes of a model of one stack: forward, loss, gradients, and extend with a cache.
///
///   token ids -> embedding -> block x n_layers -> final norm -> head -> logits or loss
///
/// One line per step, with the shape at its end, is in Stack::forward (stack.hpp) and Block::forward (block.hpp); for
/// training the same list upward. T: tokens of all sequences of a batch together.
#pragma once
#include <bit>
#include <type_traits>

#include "typeformer/kernel/recording.hpp"
#include "typeformer/model/head.hpp"
#include "typeformer/model/sampling.hpp"

namespace typeformer::inline TYPEFORMER_ABI {

namespace detail {

/// Throws Error when a stack whose positions are rows of a table shall hold more than it has.
template <class S>
void check_capacity(int capacity) {
  if constexpr (S::position.acts_on == ActsOn::embedding)
    if (capacity > S::dims.max_seq)
      throw Error("State", "capacity",
                  "at most " + std::to_string(S::dims.max_seq) + ", the rows of the position table",
                  std::to_string(capacity));
}

}  // namespace detail

/// What a decoder remembers between calls: keys and values of every layer, for `sequences` sequences, and the memory of
/// a pass. One for each use of a model at a time; made for one model's architecture, device and type of activations.
template <class M, class Device, class A = float>
class State : public KVCache<M, Device, A> {
 public:
  /// Throws Error when the options are not positive, or the capacity exceeds the positions of a position table.
  template <class W>
  explicit State(const Model<M, Device, W>& model, const StateOptions& options = {})
      : KVCache<M, Device, A>(model.device(), options) {
    detail::check_capacity<M>(this->capacity());
  }

  // --- for the passes of model/ ---
  detail::PassState<Device, A>& passes() { return passes_; }

 private:
  detail::PassState<Device, A> passes_;
};

template <class M, class Device, class W>
State(const Model<M, Device, W>&, const StateOptions&) -> State<M, Device, activation_t<Device, W>>;
template <class M, class Device, class W>
State(const Model<M, Device, W>&) -> State<M, Device, activation_t<Device, W>>;

/// Gradients of every parameter of M, in float.
template <class M, class Device>
using Gradients = ParameterArena<M, Device, float>;

namespace detail {

template <class M, class Device, class W>
Stack<M, Device, W> stack_of(const Model<M, Device, W>& model) {
  return {model, "", model.tables(), model.position_rows()};
}

/// Gradients lie in the memory of the model's device object.
template <class M, class Device, class W>
void check_gradients(std::string_view operation, const Model<M, Device, W>& model,
                     const Gradients<M, Device>& gradients) {
  if (&model.device() != &gradients.device())
    throw Error(operation, "gradients", "gradients made on the model's device", "those of another device");
}

/// Where everything lies that a pass of the speaking stack reads of a model.
template <class M, class Device, class W>
std::vector<const void*> memory_of(const Model<M, Device, W>& model) {
  std::vector<const void*> memory{model.weights().matrices().data(), model.weights().vectors().data(),
                                  model.position_rows().data()};
  for (const PositionTables<Device>& tables : model.tables())
    memory.insert(memory.end(), {tables.frequencies.data(), tables.bias_rows.data()});
  return memory;
}

/// The stack that speaks: the only one, or the decoder.
template <class M>
struct SpeakingStack {
  using Type = M;
};
template <EncoderDecoderComposition M>
struct SpeakingStack<M> {
  using Type = typename M::Decoder;
};
template <class M, class Device, class W>
Head<typename SpeakingStack<M>::Type, Device, W> head_of(const Model<M, Device, W>& model) {
  constexpr bool tied = SpeakingStack<M>::Type::tied;
  const auto weights = model.weights().stack("");
  return {model.device(), weights.matrix(tied ? Tensor::token_embeddings : Tensor::head_weight),
          weights.vector(Tensor::head_bias)};
}

/// No encoder: cross-attention has nothing to be redirected to.
inline constexpr auto no_source = [](int, auto&) {};

template <class M>
void check_positions(std::string_view operation, const Batch& batch) {
  if constexpr (M::position.acts_on == ActsOn::embedding)
    for (const int length : batch.lengths)
      if (length > M::dims.max_seq)
        throw Error(operation, "lengths",
                    "at most " + std::to_string(M::dims.max_seq) + " tokens, the rows of the position table",
                    std::to_string(length));
}

/// A whole pass without a cache. `keep`: for a backward. Its activations lie in `memory`.
template <class M, class Device, class W, class Observer>
StackActivations<activation_t<Device, W>> run(std::string_view operation, const Model<M, Device, W>& model,
                                              const Batch& batch, PassArrays<Device, activation_t<Device, W>>& pass,
                                              PassMemory<Device>& memory, bool keep, Observer& observer) {
  using A = activation_t<Device, W>;
  check_batch(operation, batch, M::dims.vocab);
  check_positions<M>(operation, batch);
  pass.set(model.device(), batch, M::layer_kinds);
  auto a = stack_activations<M, A>(model.device(), memory, pass.tokens(), 0, keep, false);
  const auto per_kind = [&](int kind) { return pass.of_kind(kind); };
  stack_of(model).forward(pass, a, static_cast<KVCache<M, Device, A>*>(nullptr), per_kind, no_source, observer);
  return a;
}

/// `count` numbers of the device, in host memory as float.
template <class A, class Device>
std::vector<float> to_host(Device& on, const A* data, std::int64_t count) {
  std::vector<A> host(static_cast<std::size_t>(count));
  if (count) on.download(host.data(), data, host.size() * sizeof(A));
  if constexpr (std::is_same_v<A, float>) {
    return host;
  } else {
    std::vector<float> values(host.size());
    for (std::size_t i = 0; i < host.size(); ++i) values[i] = to_float(host[i]);
    return values;
  }
}

}  // namespace detail

/// Logits of every position of every sequence, [T, vocab], without a cache. For scoring and comparison; generation uses
/// extend. Throws Error when an id is not in the vocabulary or the lengths do not add up.
template <Composition M, class Device, Storage W, class Observer = NoObserver>
requires(M::has_head && !M::cross_attention) Logits
    forward(const Model<M, Device, W>& model, const Batch& batch, Observer&& observer = {}) {
  Device& on = model.device();
  detail::PassArrays<Device, activation_t<Device, W>> pass;
  detail::PassMemory<Device> memory;
  const auto a = detail::run("forward", model, batch, pass, memory, false, observer);  // [T, d_model]
  Buffer<Device, float> logits(on, static_cast<std::size_t>(pass.tokens() * M::dims.vocab));
  detail::head_of(model).logits(logits.data(), a.normed, pass.tokens());  // [T, vocab]
  observer(Observed<float>{"", "logits", -1, logits.data(), pass.tokens(), M::dims.vocab});
  return {detail::to_host(on, logits.data(), pass.tokens() * M::dims.vocab), M::dims.vocab};
}

/// Hidden states after the final norm, [T, d_model], in host memory: what an encoder gives.
template <Composition M, class Device, Storage W, class Observer = NoObserver>
requires(!M::cross_attention) std::vector<float> hidden_states(const Model<M, Device, W>& model, const Batch& batch,
                                                               Observer&& observer = {}) {
  detail::PassArrays<Device, activation_t<Device, W>> pass;
  detail::PassMemory<Device> memory;
  const auto a = detail::run("hidden_states", model, batch, pass, memory, false, observer);  // [T, d_model]
  return detail::to_host(model.device(), a.normed, pass.tokens() * M::dims.d_model);
}

/// The mean cross-entropy of the labels (one per token; negative: ignored), without gradients.
template <Composition M, class Device, Storage W>
requires(M::has_head && !M::cross_attention) float loss(const Model<M, Device, W>& model, const Batch& batch,
                                                        std::span<const std::int32_t> labels,
                                                        const LossOptions& options = {}) {
  detail::check_labels("loss", labels, batch.ids.size(), M::dims.vocab, options);
  detail::PassArrays<Device, activation_t<Device, W>> pass;
  detail::PassMemory<Device> memory;
  NoObserver observer;
  const auto a = detail::run("loss", model, batch, pass, memory, false, observer);  // [T, d_model]
  const Buffer<Device, std::int32_t> targets(model.device(), labels);
  return detail::head_of(model).loss(a.normed, targets.data(), labels, options, nullptr, nullptr, nullptr);
}

/// The loss, and its gradients added to `gradients`. The observer sees the forward and, downward, "hidden_gradient" of
/// each layer.
template <Composition M, class Device, Storage W, class Observer = NoObserver>
requires(M::has_head &&
         !M::cross_attention) float loss_and_gradients(const Model<M, Device, W>& model, const Batch& batch,
                                                       std::span<const std::int32_t> labels,
                                                       Gradients<M, Device>& gradients, const LossOptions& options = {},
                                                       Observer&& observer = {}) {
  detail::check_labels("loss_and_gradients", labels, batch.ids.size(), M::dims.vocab, options);
  detail::check_gradients("loss_and_gradients", model, gradients);
  Device& on = model.device();
  detail::PassArrays<Device, activation_t<Device, W>> pass;
  detail::PassMemory<Device> memory;
  const auto a = detail::run("loss_and_gradients", model, batch, pass, memory, true, observer);  // [T, d_model]
  const Buffer<Device, std::int32_t> targets(on, labels);
  const auto into = gradients.stack("");
  float* dtable = into.matrix(Tensor::token_embeddings);
  using A = activation_t<Device, W>;
  Buffer<Device, A> dx(on, batch.ids.size() * static_cast<std::size_t>(M::dims.d_model));
  Buffer<Device, std::byte> scratch(on, static_cast<std::size_t>(detail::backward_bytes<M, A>(pass.tokens(), 0)));
  const float value =
      detail::head_of(model).loss(a.normed, targets.data(), labels, options, dx.data(),
                                  M::tied ? dtable : into.matrix(Tensor::head_weight), into.vector(Tensor::head_bias));
  const auto per_kind = [&](int kind) { return pass.of_kind(kind); };
  detail::stack_of(model).backward(pass, a, per_kind, into, dtable, dx.data(), nullptr, scratch.data(), observer);
  return value;
}

namespace detail {

/// A state lies in the memory of one device object.
template <class M, class Device, class W, class S, class A>
void check_device(std::string_view operation, const Model<M, Device, W>& model, const KVCache<S, Device, A>& cache) {
  if (&model.device() != &cache.device())
    throw Error(operation, "state", "a state made for a model on this device", "one of another device");
}

template <class S, class Device, class A>
void check_extend(const KVCache<S, Device, A>& cache, const Batch& batch) {
  check_batch("extend", batch, S::dims.vocab);
  if (static_cast<int>(batch.lengths.size()) != cache.sequences())
    throw Error("extend", "lengths",
                std::to_string(cache.sequences()) + " lengths, one per sequence of the state (0: none)",
                std::to_string(batch.lengths.size()));
  for (int s = 0; s < cache.sequences(); ++s) {
    const int length = batch.lengths[static_cast<std::size_t>(s)];
    if (length > cache.capacity() - cache.length(s))
      throw Error("extend", "lengths",
                  "at most " + std::to_string(cache.capacity() - cache.length(s)) + " more tokens: the capacity is " +
                      std::to_string(cache.capacity()) + " positions",
                  std::to_string(length));
    const int prefix = batch.mask_data.empty() ? 0 : batch.mask_data[static_cast<std::size_t>(s)].prefix;
    const int readable = cache.length(s) > 0 ? cache.length(s) : std::min(length, cache.chunk());
    if (length > 0 && prefix > readable)
      throw Error("extend", "mask_data",
                  "a prefix of at most " + std::to_string(readable) + " positions: it is read in one pass",
                  std::to_string(prefix));
  }
}

/// Reads a batch into a cache, chunk by chunk: once(first, count) runs the pass of tokens first[s] .. first[s] +
/// count[s] - 1 of each sequence.
template <class S, class Device, class A, class Once>
void extend_in_chunks(KVCache<S, Device, A>& cache, const Batch& batch, const Once& once) {
  check_extend(cache, batch);
  const auto sequences = static_cast<std::size_t>(cache.sequences());
  std::vector<int> first(sequences, 0), count(sequences);
  for (;;) {
    for (std::size_t s = 0; s < sequences; ++s) count[s] = std::min(batch.lengths[s] - first[s], cache.chunk());
    if (std::all_of(count.begin(), count.end(), [](int n) { return n == 0; })) return;
    once(std::span<const int>(first), std::span<const int>(count));
    for (std::size_t s = 0; s < sequences; ++s) {
      cache.advance(static_cast<int>(s), count[s]);
      first[s] += count[s];
    }
  }
}

/// What must be the same for two passes of one token per sequence to be the same operations: the memory they work in,
/// which sequences of an encoder's they read, and roughly how long the longest sequence is, by which a device may
/// choose its launches.
template <class State>
std::vector<std::int64_t> recording_key(State& state, std::span<const void* const> memory) {
  std::vector<std::int64_t> key{state.passes().arrays.tokens()};
  for (const void* at : memory) key.push_back(static_cast<std::int64_t>(reinterpret_cast<std::intptr_t>(at)));
  for (const Segment& source : state.passes().arrays.cross()) key.push_back(source.queries);
  int longest = 0;
  for (int s = 0; s < state.sequences(); ++s) longest = std::max(longest, state.length(s));
  key.push_back(std::bit_width(static_cast<unsigned>(longest)));
  return key;
}

/// What extend leaves on the host, by sequence of a state: logits, or where they are sampled ids.
struct Extended {
  Logits logits;
  std::vector<std::int32_t> ids;
};
/// Zeros, or with `rules` -1: for the sequences that get no token.
template <class S>
Extended nothing_extended(int sequences, std::span<const SampleRule> rules) {
  const auto count = static_cast<std::size_t>(sequences);
  if (!rules.empty()) return {{}, std::vector<std::int32_t>(count, -1)};
  return {{std::vector<float>(count * static_cast<std::size_t>(S::dims.vocab)), S::dims.vocab}, {}};
}

/// The rows of logits, or the ids if there are any, of the sequences that `finished`.
template <class Device>
void take_to_host(Device& on, std::span<const int> finished, const float* logits, const std::int32_t* ids,
                  Extended& result) {
  const auto count = static_cast<std::int64_t>(finished.size());
  if (ids) {
    std::vector<std::int32_t> rows(finished.size());
    on.download(rows.data(), ids, rows.size() * sizeof(std::int32_t));
    for (std::size_t i = 0; i < rows.size(); ++i) result.ids[static_cast<std::size_t>(finished[i])] = rows[i];
    return;
  }
  const int vocab = result.logits.vocab;
  const std::vector<float> rows = to_host(on, logits, count * vocab);
  for (std::size_t i = 0; i < finished.size(); ++i)
    std::copy_n(rows.begin() + static_cast<std::ptrdiff_t>(i) * vocab, vocab,
                result.logits.values.begin() + std::int64_t{finished[i]} * vocab);
}

/// Runs a pass through the cache of a state of stack S and puts the logits of the sequences that end in it, or the ids
/// that are sampled from them, to their places in `result`. forward(activations) is the stack's part, and reads what
/// lies in `memory`. Passes of one token per sequence are recorded, unless somebody observes them.
template <class S, class Device, class W, class State, class Forward, class Observer>
void extend_pass(Head<S, Device, W> head, State& state, std::vector<const void*> memory, const Forward& forward,
                 Extended& result, Observer& observer) {
  using A = activation_t<Device, W>;
  constexpr int vocab = S::dims.vocab, d_model = S::dims.d_model;
  Device& on = state.device();
  const auto& pass = state.passes().arrays;
  const auto last = static_cast<std::int64_t>(pass.finished().size());
  StackActivations<A> a = stack_activations<S, A>(on, state.passes().activations, pass.tokens(), 0, false, true);
  Slab size;
  size.take<A>(last, d_model), size.take<float>(last, vocab), size.take<std::int32_t>(last, 1);
  Slab slab(state.passes().logits.bytes(on, size.used()));
  A* chosen = slab.take<A>(last, d_model);
  float* logits = slab.take<float>(last, vocab);
  std::int32_t* ids = pass.rules() ? slab.take<std::int32_t>(last, 1) : nullptr;

  const auto work = [&] {
    forward(a);  // [T, d_model]
    const A* hidden = a.normed;
    if (last < pass.tokens()) {
      gather_rows(on, GatherArgs<A, A>{
                          .y = chosen, .table = a.normed, .index = pass.last_rows(), .tokens = last, .width = d_model});
      hidden = chosen;  // [last, d_model]
    }
    if (last > 0) head.logits(logits, hidden, last);  // [last, vocab]
    if (ids) sample_rows(on, SampleArgs{ids, logits, pass.rules(), last, vocab});
  };
  if constexpr (std::is_same_v<std::remove_const_t<Observer>, NoObserver>) {
    memory.insert(memory.end(), {a.x, logits, ids, pass.ids()});
    if (last == pass.tokens())
      run_recorded(on, state.passes().recording, recording_key(state, memory), work);
    else
      work();
  } else {
    work();
    if (last > 0) observer(Observed<float>{"", "logits", -1, logits, last, vocab});
  }
  take_to_host(on, pass.finished(), logits, ids, result);
}

/// Throws Error unless there is a rule for each sequence, and each is in range.
inline void check_rules(std::span<const SampleRule> rules, int sequences, int vocab) {
  if (rules.size() != static_cast<std::size_t>(sequences))
    throw Error("extend_and_sample", "rules", std::to_string(sequences) + " rules, one per sequence of the state",
                std::to_string(rules.size()));
  for (const SampleRule& rule : rules) check_sampling(rule, static_cast<std::size_t>(vocab));
}
/// The ids, each a token or -1 where the batch has none. Throws Error for a NoToken.
inline std::vector<std::int32_t> tokens_of(std::vector<std::int32_t> ids, const Batch& batch) {
  for (std::size_t s = 0; s < ids.size(); ++s)
    if (batch.lengths[s] > 0) token_of(ids[s]);
  return ids;
}
/// The length of one sequence among those of a state, the others 0.
inline std::vector<int> lengths_of_one(std::string_view operation, int sequences, int sequence, std::size_t length) {
  if (sequence < 0 || sequence >= sequences)
    throw Error(operation, "sequence", "0 to " + std::to_string(sequences - 1), std::to_string(sequence));
  std::vector<int> lengths(static_cast<std::size_t>(sequences), 0);
  lengths[static_cast<std::size_t>(sequence)] = static_cast<int>(length);
  return lengths;
}

/// extend, and extend_and_sample when there are rules.
template <class M, class Device, class W, class Observer>
Extended extend_state(const Model<M, Device, W>& model, State<M, Device, activation_t<Device, W>>& state,
                      const Batch& batch, std::span<const SampleRule> rules, Observer& observer) {
  using A = activation_t<Device, W>;
  check_device("extend", model, state);
  Extended result = nothing_extended<M>(state.sequences(), rules);
  extend_in_chunks(static_cast<KVCache<M, Device, A>&>(state), batch, [&](auto first, auto count) {
    state.passes().arrays.set(model.device(), batch, first, count, state, rules);
    const auto per_kind = [&](int kind) { return state.passes().arrays.of_kind(kind); };
    const auto forward = [&](StackActivations<A>& a) {
      stack_of(model).forward(state.passes().arrays, a, &state, per_kind, no_source, observer);
    };
    extend_pass(head_of(model), state, memory_of(model), forward, result, observer);
  });
  return result;
}

}  // namespace detail

/// Appends tokens to the sequences of a state - a prompt, or one token each - and returns the logits after the last
/// token of each, [sequences, vocab]; zeros for a sequence that got none. batch.lengths has one entry per sequence of
/// the state. The numbers are those of forward, whatever the split into calls and chunks and whatever the other
/// sequences are: on the CPU bit for bit, on CUDA up to rounding, as products and attention are chosen by size. Throws
/// Error, before anything changes, when an id is not in the vocabulary or a sequence would exceed the capacity.
template <Composition M, class Device, Storage W, class Observer = NoObserver>
requires(M::has_head && !M::cross_attention) Logits
    extend(const Model<M, Device, W>& model, State<M, Device, activation_t<Device, W>>& state, const Batch& batch,
           Observer&& observer = {}) {
  return detail::extend_state(model, state, batch, {}, observer).logits;
}

/// extend for one sequence: the logits after its last token.
template <Composition M, class Device, Storage W>
requires(M::has_head && !M::cross_attention) std::vector<float> extend(const Model<M, Device, W>& model,
                                                                       State<M, Device, activation_t<Device, W>>& state,
                                                                       std::span<const std::int32_t> ids,
                                                                       int sequence = 0) {
  const auto lengths = detail::lengths_of_one("extend", state.sequences(), sequence, ids.size());
  const Logits all = extend(model, state, Batch{ids, lengths});
  const auto row = all[sequence];
  return {row.begin(), row.end()};
}

/// extend, and the token to come after each sequence, sampled where the logits are: only ids leave the device. `rules`:
/// one per sequence of the state. The ids are those of sample() on the logits of extend; -1 for a sequence that got no
/// tokens. Throws Error as both do: for logits that give no token when all sequences have been read.
template <Composition M, class Device, Storage W, class Observer = NoObserver>
requires(M::has_head && !M::cross_attention) std::vector<std::int32_t> extend_and_sample(
    const Model<M, Device, W>& model, State<M, Device, activation_t<Device, W>>& state, const Batch& batch,
    std::span<const SampleRule> rules, Observer&& observer = {}) {
  detail::check_rules(rules, state.sequences(), M::dims.vocab);
  return detail::tokens_of(detail::extend_state(model, state, batch, rules, observer).ids, batch);
}

/// extend_and_sample for one sequence: the token after its last one, which is draw number `step`.
template <Composition M, class Device, Storage W>
requires(M::has_head && !M::cross_attention) std::int32_t
    extend_and_sample(const Model<M, Device, W>& model, State<M, Device, activation_t<Device, W>>& state,
                      std::span<const std::int32_t> ids, const SamplingOptions& options, std::uint64_t step = 0,
                      int sequence = 0) {
  if (ids.empty()) throw Error("extend_and_sample", "ids", "at least one token", "none");
  const auto lengths = detail::lengths_of_one("extend_and_sample", state.sequences(), sequence, ids.size());
  const std::vector<SampleRule> rules(lengths.size(), sample_rule(options, step));
  return extend_and_sample(model, state, Batch{ids, lengths}, rules)[static_cast<std::size_t>(sequence)];
}

}  // namespace typeformer
