/// What must agree, whatever the network: full pass, prefill and decode, chunks, batches, threads, poisoned memory,
/// reset.
#pragma once
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <thread>
#include <vector>

#include "model/harness.hpp"

namespace consistency {
using namespace typeformer;

inline std::vector<std::int32_t> ids_of(int count, int vocab, int seed) {
  std::vector<std::int32_t> ids;
  for (int i = 0; i < count; ++i) ids.push_back((i * i * 7 + i * 31 + seed * 13) % vocab);
  return ids;
}
inline std::vector<float> row(const Logits& logits, std::int64_t index) {
  return {logits[index].begin(), logits[index].end()};
}

/// Reads `ids` into sequence 0 of a fresh state, `step` tokens a call, and returns the logits after each call's last
/// token.
template <class M, class W>
std::vector<std::vector<float>> in_steps(const Model<M, cpu::Device, W>& model, const std::vector<std::int32_t>& ids,
                                         int step, int chunk) {
  State state(model, {.capacity = static_cast<int>(ids.size()), .chunk = chunk});
  std::vector<std::vector<float>> rows;
  for (std::size_t first = 0; first < ids.size(); first += static_cast<std::size_t>(step)) {
    const auto count = std::min(ids.size() - first, static_cast<std::size_t>(step));
    rows.push_back(extend(model, state, std::span(ids).subspan(first, count)));
  }
  return rows;
}

/// Fills every key and value of a state with NaN: what is read without having been written shows.
template <class M>
void poison(cpu::Device&, State<M, cpu::Device>& state) {
  for (int layer = 0; layer < M::dims.n_layers; ++layer) {
    const auto count = static_cast<std::size_t>(state.slots(M::layer_kind(layer))) *
                       static_cast<std::size_t>(state.sequences()) * static_cast<std::size_t>(M::kv_width);
    std::fill_n(state.keys(layer), count, std::numeric_limits<float>::quiet_NaN());
    std::fill_n(state.values(layer), count, std::numeric_limits<float>::quiet_NaN());
  }
}

template <class M, class W>
void check(cpu::Device& device) {
  Model<M, cpu::Device, W> model(device);
  initialize(model, 5);
  for (const Parameter& p : parameters<M>) {  // larger than a fresh initialization, so that attention is not flat
    auto values = model.weights().get(p);
    for (float& value : values) value = p.matrix ? value * 12.f : value + .1f;
    model.weights().set(p, values);
  }
  const auto ids = ids_of(33, M::dims.vocab, 1), other = ids_of(21, M::dims.vocab, 2);
  const int length = 33, lengths[] = {33, 21};
  const Logits full = forward(model, Batch{ids, std::span(&length, 1)});

  SUBCASE("prefill, decode and chunks equal the full pass bit for bit") {
    for (const int step : {1, 4, 33})
      for (const int chunk : {1, 3, 7, 64}) {
        const auto rows = in_steps(model, ids, step, chunk);
        for (std::size_t i = 0; i < rows.size(); ++i)
          CHECK(rows[i] == row(full, std::min<std::int64_t>(length, static_cast<std::int64_t>(i + 1) * step) - 1));
      }
  }
  SUBCASE("a batch equals its sequences alone, and memory that nobody wrote changes nothing") {
    std::vector<std::int32_t> both = ids;
    both.insert(both.end(), other.begin(), other.end());
    const Logits together = forward(model, Batch{both, lengths});
    State state(model, {.sequences = 3, .capacity = 40, .chunk = 6});
    poison(device, state);
    const int three[] = {0, 33, 21};
    const Logits cached = extend(model, state, Batch{both, three});
    CHECK(row(cached, 1) == row(full, 32));
    CHECK(row(together, 32) == row(full, 32));
    CHECK(row(cached, 2) == row(together, 53));
    CHECK(row(cached, 0) == std::vector<float>(static_cast<std::size_t>(M::dims.vocab)));
  }
  SUBCASE("after reset a second prompt equals a fresh object bit for bit") {
    State used(model, {.capacity = 40, .chunk = 5}), fresh(model, {.capacity = 40, .chunk = 5});
    extend(model, used, ids);
    used.reset();
    CHECK(used.length() == 0);
    CHECK(extend(model, used, other) == extend(model, fresh, other));
  }
  SUBCASE("a copied prefix continues as its own, a truncated one as if the rest had never been") {
    State state(model, {.sequences = 2, .capacity = 60, .chunk = 8});
    extend(model, state, ids, 0);
    state.copy(0, 1);
    const std::int32_t next = 3;
    const auto after = extend(model, state, std::span(&next, 1), 0);
    CHECK(extend(model, state, std::span(&next, 1), 1) == after);
    state.truncate(0, 33);
    CHECK(extend(model, state, std::span(&next, 1), 0) == after);
  }
  SUBCASE("threads: any number of them, and two on one const model") {
    for (const int threads : {1, 3}) {
      cpu::Device another(threads);
      Model<M, cpu::Device, W> copy(another);
      for (const Parameter& p : parameters<M>) copy.weights().set(p, model.weights().get(p));
      CHECK(forward(copy, Batch{ids, std::span(&length, 1)}).values == full.values);
    }
    const auto& shared = model;
    std::vector<std::vector<float>> results(2);
    {
      std::vector<std::thread> team;
      for (std::size_t i = 0; i < 2; ++i)
        team.emplace_back([&, i] {
          State state(shared, {.capacity = 40});
          results[i] = extend(shared, state, ids);
        });
      for (auto& member : team) member.join();
    }
    CHECK(results[0] == row(full, 32));
    CHECK(results[1] == row(full, 32));
  }
  SUBCASE("bad input is refused by name and changes nothing") {
    State state(model, {.sequences = 1, .capacity = 34});
    extend(model, state, ids);
    const std::int32_t bad[] = {M::dims.vocab}, negative[] = {-1}, two[] = {1, 2}, one[] = {1};
    CHECK_THROWS_WITH_AS(extend(model, state, bad), doctest::Contains("extend: ids: expected ids from 0 to"), Error);
    CHECK_THROWS_AS(extend(model, state, negative), Error);
    CHECK_THROWS_WITH_AS(extend(model, state, two), doctest::Contains("the capacity is 34 positions, got 2"), Error);
    CHECK_THROWS_AS(extend(model, state, one, 1), Error);
    CHECK_THROWS_AS(State(model, {.sequences = 0}), Error);
    CHECK_THROWS_AS(state.truncate(0, 35), Error);
    const int wrong = 5;
    CHECK_THROWS_AS(forward(model, Batch{ids, std::span(&wrong, 1)}), Error);
    CHECK(state.length() == 33);
    State fresh(model, {.capacity = 34});
    extend(model, fresh, ids);
    CHECK(extend(model, state, one) == extend(model, fresh, one));
  }
}

}  // namespace consistency
