// extend_and_sample: the ids of sample() on the logits of extend, for one sequence and for many, and what is refused.
#include <doctest/doctest.h>

#include <limits>
#include <vector>

#include "model/consistency.hpp"
#include "model/tiny_models.hpp"

namespace {

using namespace typeformer;
using consistency::ids_of;
using Ids = std::vector<std::int32_t>;

template <class M>
Model<M, cpu::Device> random_model(cpu::Device& device) {
  Model<M, cpu::Device> model(device);
  initialize(model, 5);
  for (const Parameter& p : parameters<M>) {
    auto values = model.weights().get(p);
    for (float& value : values) value = p.matrix ? value * 12.f : value + .1f;
    model.weights().set(p, values);
  }
  return model;
}

/// What a batch of sequences does one after the other: prompts of several chunks, nothing for one of them, one token.
const std::vector<std::vector<int>> calls{{9, 0, 4}, {1, 1, 1}, {1, 0, 1}, {1, 1, 1}, {1, 1, 1}, {2, 3, 0}};
const std::vector<SamplingOptions> options{
    {.temperature = 1.f, .seed = 1}, {}, {.temperature = 2.f, .top_k = 9, .top_p = .8f, .seed = 1}};

template <class M, class S>
void check_calls(const Model<M, cpu::Device>& model, S& plain, S& sampled, int vocab) {
  int seed = 0;
  std::uint64_t step = 0;
  for (const std::vector<int>& lengths : calls) {
    const Ids ids = ids_of(lengths[0] + lengths[1] + lengths[2], vocab, ++seed);
    const Logits logits = extend(model, plain, Batch{ids, lengths});
    std::vector<SampleRule> rules;
    Ids expected;
    for (std::size_t s = 0; s < 3; ++s) {
      rules.push_back(sample_rule(options[s], step));
      expected.push_back(lengths[s] ? sample(logits[static_cast<std::int64_t>(s)], options[s], step) : -1);
    }
    CHECK(extend_and_sample(model, sampled, Batch{ids, lengths}, rules) == expected);
    ++step;
  }
  for (int s = 0; s < 3; ++s) CHECK(plain.length(s) == sampled.length(s));
}

}  // namespace

TEST_CASE("one stack: the ids of sample() on the logits, sequence by sequence") {
  cpu::Device device(2);
  const auto model = random_model<tiny::Gemma3>(device);
  State plain(model, {.sequences = 3, .capacity = 30, .chunk = 3}), sampled(model, {.sequences = 3, .chunk = 3});
  check_calls(model, plain, sampled, tiny::Gemma3::dims.vocab);
}
TEST_CASE("two stacks") {
  cpu::Device device(2);
  const auto model = random_model<tiny::T5>(device);
  EncoderDecoderState plain(model, {.sequences = 3, .chunk = 3}), sampled(model, {.sequences = 3, .chunk = 3});
  const int lengths[] = {3, 5, 2};
  const Ids source = ids_of(10, tiny::T5::Encoder::dims.vocab, 3);
  encode(model, plain, Batch{source, lengths});
  encode(model, sampled, Batch{source, lengths});
  check_calls(model, plain, sampled, tiny::T5::Decoder::dims.vocab);
}
TEST_CASE("one sequence of several, and logits and ids of one state in turn") {
  cpu::Device device(2);
  const auto model = random_model<tiny::Llama>(device);
  const SamplingOptions& drawn = options[0];
  State plain(model, {.sequences = 2, .capacity = 30}), sampled(model, {.sequences = 2, .capacity = 30});
  Ids next = ids_of(7, tiny::Llama::dims.vocab, 1);
  for (std::uint64_t step = 0; step < 6; ++step) {
    const auto logits = extend(model, plain, next, 1);
    if (step % 3 == 2)
      CHECK(extend(model, sampled, next, 1) == logits);
    else
      CHECK(extend_and_sample(model, sampled, next, drawn, step, 1) == sample(logits, drawn, step));
    next = {sample(logits, drawn, step)};
  }
  CHECK(sampled.length(0) == 0);
}
TEST_CASE("rules out of range change nothing; logits that give no token are an Error") {
  cpu::Device device(1);
  auto model = random_model<tiny::Llama>(device);
  State state(model, {.sequences = 2, .capacity = 30});
  const Ids ids{1, 2, 3};
  const int lengths[] = {1, 2};
  const auto refuse = [&](const std::vector<SampleRule>& rules, const char* text) {
    CHECK_THROWS_WITH_AS(extend_and_sample(model, state, Batch{ids, lengths}, rules), doctest::Contains(text), Error);
    CHECK(state.length(0) + state.length(1) == 0);
  };
  refuse({}, "extend_and_sample: rules: expected 2 rules, one per sequence of the state, got 0");
  refuse({{}, {.temperature = -1.f}}, "sample: temperature");
  refuse({{.top_k = -1}, {}}, "sample: top_k");
  refuse({{}, {.top_p = 0.f}}, "sample: top_p");
  CHECK_THROWS_WITH_AS(extend_and_sample(model, state, Ids{}, {}), doctest::Contains("ids: expected at least one"),
                       Error);
  CHECK_THROWS_WITH_AS(extend_and_sample(model, state, ids, {}, 0, 2), doctest::Contains("extend_and_sample: sequence"),
                       Error);
  const Ids outside{tiny::Llama::dims.vocab};
  CHECK_THROWS_WITH_AS(extend_and_sample(model, state, outside, {}), doctest::Contains("ids"), Error);
  CHECK(state.length(0) + state.length(1) == 0);
  for (const Parameter& p : parameters<tiny::Llama>)
    model.weights().set(
        p, std::vector<float>(static_cast<std::size_t>(p.size()), std::numeric_limits<float>::quiet_NaN()));
  CHECK_THROWS_WITH_AS(extend_and_sample(model, state, ids, {}), "sample: logits: expected numbers, got NaN", Error);
}
