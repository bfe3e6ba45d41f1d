// Two stacks, every way of running them: the same numbers, with f32 and with bf16 weights.
#include <doctest/doctest.h>

#include <algorithm>
#include <thread>
#include <vector>

#include "model/consistency.hpp"
#include "model/tiny_models.hpp"

namespace {

using namespace typeformer;
using consistency::ids_of;
using consistency::row;
using Ids = std::vector<std::int32_t>;

/// One target with its source.
struct Pair {
  Ids source, target;
};

/// Pairs one after the other, as batches.
struct Pairs {
  harness::OwnedBatch source, target;
  explicit Pairs(const std::vector<Pair>& pairs) {
    for (const Pair& pair : pairs) {
      source.ids.insert(source.ids.end(), pair.source.begin(), pair.source.end());
      source.lengths.push_back(static_cast<int>(pair.source.size()));
      target.ids.insert(target.ids.end(), pair.target.begin(), pair.target.end());
      target.lengths.push_back(static_cast<int>(pair.target.size()));
    }
  }
};

template <class M, class W>
Logits whole(const Model<M, cpu::Device, W>& model, const Pair& pair) {
  const Pairs one({pair});
  return forward(model, one.source, one.target);
}

/// The logits after each of the calls that read the target `step` tokens at a time, chunk by chunk.
template <class M, class W>
std::vector<std::vector<float>> in_steps(const Model<M, cpu::Device, W>& model,
                                         EncoderDecoderState<M, cpu::Device>& state, const Pair& pair,
                                         std::size_t step) {
  const Pairs one({pair});
  encode(model, state, one.source);
  std::vector<std::vector<float>> rows;
  for (std::size_t first = 0; first < pair.target.size(); first += step) {
    const auto part = std::span(pair.target).subspan(first, std::min(step, pair.target.size() - first));
    const int count = static_cast<int>(part.size());
    rows.push_back(row(extend(model, state, Batch{part, std::span(&count, 1)}), 0));
  }
  return rows;
}

template <class M, class W>
struct Fixture {
  using Decoder = typename M::Decoder;
  static constexpr int vocab = Decoder::dims.vocab;
  cpu::Device device{2};
  Model<M, cpu::Device, W> model{device};
  Pair first{ids_of(29, vocab, 3), ids_of(33, vocab, 1)}, second{ids_of(12, vocab, 4), ids_of(21, vocab, 2)};

  Fixture() {
    initialize(model, 5);
    for (const Parameter& p : parameters<M>) {  // larger than a fresh initialization, so that attention is not flat
      auto values = model.weights().get(p);
      for (float& value : values) value = p.matrix ? value * 12.f : value + .1f;
      model.weights().set(p, values);
    }
  }
};

template <class M, class W>
void check_steps() {
  Fixture<M, W> f;
  const Logits full = whole(f.model, f.first);
  CHECK(row(full, 0) != row(whole(f.model, {f.second.source, f.first.target}), 0));  // the source is read
  for (const std::size_t step : {1u, 4u, 33u})
    for (const int chunk : {1, 3, 7, 64}) {
      EncoderDecoderState state(f.model, {.capacity = 33, .chunk = chunk});
      const auto rows = in_steps(f.model, state, f.first, step);
      for (std::size_t i = 0; i < rows.size(); ++i)
        CHECK(rows[i] == row(full, static_cast<std::int64_t>(std::min<std::size_t>(33, (i + 1) * step)) - 1));
    }
}

/// Sequences of a batch, one of them without a token, in a cache whose memory nobody wrote before.
template <class M, class W>
void check_batch() {
  Fixture<M, W> f;
  const Logits one = whole(f.model, f.first), two = whole(f.model, f.second);
  const Pairs both({f.first, f.second}), three({{f.second.source, {}}, f.first, f.second});
  const Logits together = forward(f.model, both.source, both.target);
  CHECK(std::equal(one.values.begin(), one.values.end(), together.values.begin()));
  CHECK(std::equal(two.values.rbegin(), two.values.rend(), together.values.rbegin()));
  EncoderDecoderState state(f.model, {.sequences = 3, .capacity = 40, .chunk = 6});
  for (int layer = 0; layer < M::Decoder::dims.n_layers; ++layer) {
    const std::size_t count = 3u * 40u * static_cast<std::size_t>(M::Decoder::kv_width);
    std::fill_n(state.keys(layer), count, std::numeric_limits<float>::quiet_NaN());
    std::fill_n(state.values(layer), count, std::numeric_limits<float>::quiet_NaN());
  }
  encode(f.model, state, three.source);
  const Logits cached = extend(f.model, state, three.target);
  CHECK(row(cached, 0) == std::vector<float>(static_cast<std::size_t>(M::Decoder::dims.vocab)));
  CHECK(row(cached, 1) == row(one, 32));
  CHECK(row(cached, 2) == row(two, 20));
  // sequences advance at their own pace
  state.reset();
  const int first_alone[] = {0, 33, 0}, second_alone[] = {0, 0, 21};
  CHECK(row(extend(f.model, state, Batch{f.first.target, first_alone}), 1) == row(one, 32));
  CHECK(row(extend(f.model, state, Batch{f.second.target, second_alone}), 2) == row(two, 20));
}

template <class M, class W>
void check_reuse() {
  Fixture<M, W> f;
  EncoderDecoderState used(f.model, {.capacity = 40, .chunk = 5}), fresh(f.model, {.capacity = 40, .chunk = 5});
  const auto expected = in_steps(f.model, fresh, f.second, 2);
  in_steps(f.model, used, f.first, 33);
  CHECK(used.length() == 33);
  CHECK(in_steps(f.model, used, f.second, 2) == expected);  // encode forgets what the state held
  used.reset();
  CHECK(used.length() == 0);
  const int count = static_cast<int>(f.second.target.size());
  const Batch target{f.second.target, std::span(&count, 1)};
  CHECK(row(extend(f.model, used, target), 0) == expected.back());  // the source stays
}

template <class M, class W>
void check_threads() {
  Fixture<M, W> f;
  const Logits full = whole(f.model, f.first);
  cpu::Device three(3);
  Model<M, cpu::Device, W> copy(three);
  for (const Parameter& p : parameters<M>) copy.weights().set(p, f.model.weights().get(p));
  CHECK(whole(copy, f.first).values == full.values);
  const auto& shared = f.model;
  std::vector<std::vector<float>> results(2);
  {
    std::vector<std::thread> team;
    for (std::size_t i = 0; i < 2; ++i)
      team.emplace_back([&, i] {
        EncoderDecoderState state(shared, {.capacity = 40});
        results[i] = in_steps(shared, state, f.first, 33)[0];
      });
    for (auto& member : team) member.join();
  }
  CHECK(results[0] == row(full, 32));
  CHECK(results[1] == row(full, 32));
}

template <class M, class W>
void check_refusals() {
  Fixture<M, W> f;
  const Pairs one({f.first});
  EncoderDecoderState state(f.model, {.capacity = 34});
  CHECK_THROWS_WITH_AS(extend(f.model, state, one.target), doctest::Contains("call encode first"), Error);
  const Pairs two({f.first, f.second});
  CHECK_THROWS_WITH_AS(encode(f.model, state, two.source), doctest::Contains("1 sequences, as the state has"), Error);
  CHECK_THROWS_AS(forward(f.model, one.source, two.target), Error);
  const Ids bad{M::Decoder::dims.vocab};
  const int length = 1;
  CHECK_THROWS_AS(encode(f.model, state, Batch{bad, std::span(&length, 1)}), Error);
  encode(f.model, state, one.source);
  const Logits last = extend(f.model, state, one.target);
  CHECK_THROWS_WITH_AS(extend(f.model, state, Batch{bad, std::span(&length, 1)}),
                       doctest::Contains("extend: ids: expected ids from 0 to"), Error);
  CHECK_THROWS_WITH_AS(extend(f.model, state, one.target), doctest::Contains("the capacity is 34 positions, got 33"),
                       Error);
  CHECK(state.length() == 33);
  state.truncate(0, 32);
  CHECK(row(extend(f.model, state, Batch{std::span(f.first.target).subspan(32), std::span(&length, 1)}), 0) ==
        row(last, 0));
}

}  // namespace

TEST_CASE_TEMPLATE("forward = encode and extend, token by token and in chunks, bit for bit", W, float, bf16) {
  check_steps<tiny::T5, W>();
}
TEST_CASE_TEMPLATE("a batch of unequal sources and targets equals its pairs alone", W, float, bf16) {
  check_batch<tiny::T5, W>();
}
TEST_CASE_TEMPLATE("a state that is used again equals a fresh one", W, float, bf16) { check_reuse<tiny::T5, W>(); }
TEST_CASE("any number of threads, and two on one const model") { check_threads<tiny::T5, float>(); }
TEST_CASE("bad input is refused by name and changes nothing") { check_refusals<tiny::T5, float>(); }
TEST_CASE("a gated network with an own head") {
  check_steps<tiny::T5Gated, float>();
  check_batch<tiny::T5Gated, float>();
}
