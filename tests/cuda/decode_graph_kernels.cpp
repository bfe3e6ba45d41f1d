// The same steps on the CPU and on the CUDA device, with changes between them that a graph must not miss.
#include "decode_graph.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "typeformer/cpu.hpp"
#include "typeformer/cuda.cuh"
#include "typeformer/typeformer.hpp"

namespace decode_graph {
namespace {

using namespace typeformer;
using Ids = std::vector<std::int32_t>;

constexpr Dims dims{.vocab = 21, .d_model = 16, .n_layers = 2, .d_ff = 24, .max_seq = 32};
using OneStack = Transformer<dims, LayerNorm{}, SwiGLU{}, RoPE{}, GQA{.heads = 2, .kv_heads = 1, .head_dim = 8},
                             PreNorm{}, Biases{}>;
using TwoStacks = EncoderDecoder<
    Transformer<dims, RMSNorm{}, ReLU{}, T5Buckets{.bidirectional = true},
                GQA{.heads = 2, .kv_heads = 2, .head_dim = 8, .scale = 1.f}, PreNorm{}, Bidirectional{}>,
    Transformer<dims, RMSNorm{}, ReLU{}, T5Buckets{}, GQA{.heads = 2, .kv_heads = 2, .head_dim = 8, .scale = 1.f},
                PreNorm{}, TiedEmbeddings{}>>;
/// With more heads than attention shares by splits when 130 sequences decode: its blocks follow a list.
constexpr Dims wide{.vocab = 21, .d_model = 64, .n_layers = 1, .d_ff = 24, .max_seq = 32};
using ManyHeads = EncoderDecoder<
    Transformer<wide, RMSNorm{}, ReLU{}, T5Buckets{.bidirectional = true},
                GQA{.heads = 64, .kv_heads = 64, .head_dim = 1, .scale = 1.f}, PreNorm{}, Bidirectional{}>,
    Transformer<wide, RMSNorm{}, ReLU{}, T5Buckets{}, GQA{.heads = 64, .kv_heads = 64, .head_dim = 1, .scale = 1.f},
                PreNorm{}, TiedEmbeddings{}>>;

/// Equal seeds, equal weights, none of them zero.
template <class M, class Device>
void fill(Model<M, Device>& model, std::uint32_t seed) {
  for (const Parameter& p : parameters<M>) {
    std::vector<float> values(static_cast<std::size_t>(p.size()));
    for (float& value : values) {
      seed = seed * 1664525u + 1013904223u;
      value = (static_cast<float>(seed >> 8) / 16777216.f - .5f) * .6f + (p.matrix ? 0.f : .5f);
    }
    model.weights().set(p, values);
  }
}

double largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size()) return std::numeric_limits<double>::infinity();
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double difference = std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i]));
    if (!(difference <= largest)) largest = difference;
  }
  return largest;
}

/// A model and a state of it on both devices, which read the same.
template <class M>
struct Pair {
  cuda::Device on;
  cpu::Device host{1};
  std::unique_ptr<Model<M, cuda::Device>> model = std::make_unique<Model<M, cuda::Device>>(on);
  std::unique_ptr<Model<M, cpu::Device>> judge = std::make_unique<Model<M, cpu::Device>>(host);

  explicit Pair(std::uint32_t seed) { fill_both(seed); }
  void fill_both(std::uint32_t seed) { fill(*model, seed), fill(*judge, seed); }
};

}  // namespace

Outcome model_made_anew() {
  Pair<OneStack> pair(1);
  State state(*pair.model, {.capacity = 32});
  const Ids prompt{1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
  const auto read = [&](auto& model, auto& of_model, int step) {
    return extend(model, of_model, step < 0 ? prompt : Ids{step + 1});
  };
  for (int step = -1; step < 4; ++step) read(*pair.model, state, step);
  const void *matrices = pair.model->weights().matrices().data(), *vectors = pair.model->weights().vectors().data();
  const std::size_t vector_count = pair.model->weights().vectors().size();
  pair.model.reset();
  Buffer<cuda::Device, float> taken(pair.on, vector_count);  // where the vectors were
  pair.model = std::make_unique<Model<OneStack, cuda::Device>>(pair.on);
  pair.fill_both(2);

  Outcome outcome;
  if (pair.model->weights().matrices().data() != matrices) outcome.wrong += "the matrices moved, ";
  if (pair.model->weights().vectors().data() == vectors) outcome.wrong += "the vectors did not move, ";
  state.reset();
  State judge(*pair.judge, {.capacity = 32});
  for (int step = -1; step < 4; ++step)
    outcome.difference = std::max(outcome.difference,
                                  largest_difference(read(*pair.model, state, step), read(*pair.judge, judge, step)));
  return outcome;
}

Outcome source_moved() {
  Pair<TwoStacks> pair(1);
  EncoderDecoderState state(*pair.model, {.capacity = 32});
  EncoderDecoderState judge(*pair.judge, {.capacity = 32});
  constexpr int source_length = 31;
  const auto encode_both = [&](int seed) {
    Ids source;
    for (int i = 0; i < source_length; ++i) source.push_back((i * seed + seed) % dims.vocab);
    const Batch batch{source, std::span(&source_length, 1)};
    encode(*pair.model, state, batch), encode(*pair.judge, judge, batch);
  };
  const auto step = [&](const Ids& ids) {
    const int length = static_cast<int>(ids.size());
    const Batch batch{ids, std::span(&length, 1)};
    return largest_difference(extend(*pair.model, state, batch).values, extend(*pair.judge, judge, batch).values);
  };
  const Ids prompt{1, 2, 3, 4, 5, 6, 7, 8};
  encode_both(3), encode_both(5);
  step(prompt);
  for (int i = 0; i < 4; ++i) step({i});
  const void *first_keys = state.source_keys(0), *first_values = state.source_values(0), *keys = state.source_keys(1);
  encode_both(4);  // what the graph reads is free now
  std::vector<Buffer<cuda::Device, std::byte>> taken;
  for (int i = 0; i < 12; ++i) taken.emplace_back(pair.on, std::size_t{source_length} * 16 * sizeof(float));
  for (auto& buffer : taken)
    if (buffer.data() == first_keys || buffer.data() == first_values) {
      const Buffer<cuda::Device, std::byte> given_back = std::move(buffer);
    }
  encode_both(2);

  Outcome outcome;
  if (state.source_keys(0) != first_keys && state.source_keys(0) != first_values) outcome.wrong += "layer 0 moved, ";
  if (state.source_keys(1) == keys) outcome.wrong += "layer 1 did not move, ";
  outcome.difference = step(prompt);
  for (int i = 0; i < 3; ++i) outcome.difference = std::max(outcome.difference, step({i}));
  return outcome;
}

Outcome other_sequences() {
  constexpr int half = 65, sequences = 2 * half;
  Pair<ManyHeads> pair(1);
  EncoderDecoderState state(*pair.model, {.sequences = sequences, .capacity = 16});
  EncoderDecoderState judge(*pair.judge, {.sequences = sequences, .capacity = 16});
  Ids source;
  for (int i = 0; i < 2 * sequences; ++i) source.push_back((i * 7 + i / wide.vocab) % wide.vocab);
  const std::vector<int> two_each(sequences, 2);
  encode(*pair.model, state, Batch{source, two_each}), encode(*pair.judge, judge, Batch{source, two_each});
  Outcome outcome;
  for (const int which : {0, 0, 0, 1, 1, 1, 0}) {
    Ids ids;
    std::vector<int> lengths(sequences, 0);
    for (int i = 0; i < half; ++i) {
      lengths[static_cast<std::size_t>(which * half + i)] = 1;
      ids.push_back((i + 3 * which) % wide.vocab);
    }
    const Batch batch{ids, lengths};
    outcome.difference = std::max(outcome.difference, largest_difference(extend(*pair.model, state, batch).values,
                                                                         extend(*pair.judge, judge, batch).values));
  }
  return outcome;
}

}  // namespace decode_graph
