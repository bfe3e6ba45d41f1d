// generate: the tokens of a loop over extend, pieces that add up to the text, and every way a generation ends.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <string>
#include <vector>

#include "typeformer/cpu.hpp"
#include "typeformer/text.hpp"

namespace {

using namespace typeformer;
using Ids = std::vector<std::int32_t>;

/// As many tokens as tests/golden/text/tiny/tokenizer.json has.
using Small = Transformer<Dims{.vocab = 605, .d_model = 32, .n_layers = 2, .d_ff = 48, .max_seq = 96}, RMSNorm{},
                          SwiGLU{}, RoPE{.theta = 100.f}, GQA{.heads = 4, .kv_heads = 2}, PreNorm{}, TiedEmbeddings{}>;

struct Fixture {
  cpu::Device device{2};
  Model<Small, cpu::Device> model{device};
  Tokenizer tokenizer{std::string(std::getenv("TYPEFORMER_GOLDEN")) + "/text/tiny"};
  Ids prompt = tokenizer.encode("The quick brown fox");

  Fixture() {
    initialize(model, 3);
    for (const Parameter& p : parameters<Small>) {  // large enough that the answer is not one token again and again
      auto values = model.weights().get(p);
      for (float& value : values) value = p.matrix ? value * 15.f : value;
      model.weights().set(p, values);
    }
  }
  Generation run(const GenerateOptions& options, std::string* streamed = nullptr, int capacity = 90) {
    State state(model, {.capacity = capacity});
    return generate(model, state, tokenizer, prompt, options, [&](std::string_view piece) {
      CHECK_FALSE(piece.empty());
      if (streamed) *streamed += piece;
    });
  }
  /// Greedy tokens by extend alone.
  Ids by_hand(std::size_t count) {
    State state(model, {.capacity = 90});
    Ids ids;
    auto logits = extend(model, state, prompt);
    while (ids.size() < count) {
      ids.push_back(static_cast<std::int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin()));
      logits = extend(model, state, std::span(&ids.back(), 1));
    }
    return ids;
  }
};

}  // namespace

TEST_CASE("ids beyond the tokenizer's tokens have no text and end nothing") {
  Fixture f;
  using Padded = Small::with<Dims{.vocab = 640, .d_model = 32, .n_layers = 2, .d_ff = 48, .max_seq = 96}>;
  CHECK(f.tokenizer.has(604));
  CHECK_FALSE(f.tokenizer.has(605));
  CHECK_FALSE(f.tokenizer.has(-1));
  Model<Padded, cpu::Device> model(f.device);
  for (const Parameter& p :
       parameters<Padded>) {  // constant rows: the head is tied, so that the largest row always wins
    std::vector<float> values(static_cast<std::size_t>(p.size()), 1.f);
    if (p.tensor == Tensor::token_embeddings)
      for (std::size_t i = 0; i < values.size(); ++i) values[i] = i / 32 == 630 ? 2.f : 1.f;
    model.weights().set(p, values);
  }
  const Generation answer = generate(model, f.tokenizer, "The quick", {.max_tokens = 3},
                                     [](std::string_view) { FAIL_CHECK("a piece without text"); });
  CHECK(answer.ids == Ids{630, 630, 630});
  CHECK(answer.text.empty());
}

TEST_CASE("greedy: the tokens of extend, text as one and in pieces") {
  Fixture f;
  std::string streamed;
  const Generation answer = f.run({.max_tokens = 40}, &streamed);
  CHECK(answer.prompt_ids == f.prompt);
  CHECK(answer.ids == f.by_hand(40));
  CHECK(Ids(answer.ids.begin(), answer.ids.begin() + 8) != Ids(8, answer.ids[0]));
  CHECK(answer.text == f.tokenizer.decode(answer.ids));
  CHECK(streamed == answer.text);
  CHECK_FALSE(answer.stopped);
  CHECK(answer.prefill_tokens_per_second() > 0);
  CHECK(answer.decode_tokens_per_second() > 0);
  CHECK(f.run({.max_tokens = 40}).ids == answer.ids);
}
TEST_CASE("a stop token ends the answer and is no part of it") {
  Fixture f;
  const Ids all = f.by_hand(40);
  const auto at = std::find_if(all.begin() + 5, all.end(), [&](std::int32_t id) {
    return std::find(all.begin(), all.begin() + 5, id) == all.begin() + 5;
  });
  REQUIRE(at != all.end());
  const auto before = std::find(all.begin(), all.end(), *at);
  const Generation answer = f.run({.max_tokens = 40, .stop_tokens = {*at}});
  CHECK(answer.stopped);
  CHECK(answer.ids == Ids(all.begin(), before));
  const Generation at_once = f.run({.max_tokens = 40, .stop_tokens = {all[0]}});
  CHECK(at_once.stopped);
  CHECK(at_once.ids.empty());
  CHECK(at_once.text.empty());
  CHECK(at_once.decode_tokens_per_second() == 0);
}
TEST_CASE("max_tokens 0 or less: nothing; the capacity ends an answer too") {
  Fixture f;
  CHECK(f.run({.max_tokens = 0}).ids.empty());
  CHECK(f.run({.max_tokens = -1}).ids.empty());
  CHECK(f.run({.max_tokens = 1}).ids == f.by_hand(1));
  const int room = static_cast<int>(f.prompt.size());
  CHECK(f.run({.max_tokens = 40}, nullptr, room).ids == f.by_hand(1));  // one token needs no position
  CHECK(f.run({.max_tokens = 40}, nullptr, room + 6).ids == f.by_hand(7));
}
TEST_CASE("sampling: a seed is an answer, temperature 0 is greedy, top_k 1 is greedy") {
  Fixture f;
  const auto draw = [&](std::uint64_t seed) { return f.run({.max_tokens = 30, .temperature = 1.f, .seed = seed}).ids; };
  CHECK(draw(1) == draw(1));
  CHECK(draw(1) != draw(2));
  CHECK(f.run({.max_tokens = 30, .temperature = 2.f, .top_k = 1}).ids == f.by_hand(30));
  CHECK(f.run({.max_tokens = 30, .temperature = 1.f, .top_p = 1e-6f}).ids == f.by_hand(30));
}
TEST_CASE("bad arguments are refused before anything changes") {
  Fixture f;
  State state(f.model, {.capacity = 20});
  const auto refuse = [&](const Ids& ids, const GenerateOptions& options, const char* text) {
    CHECK_THROWS_WITH_AS(generate(f.model, state, f.tokenizer, ids, options, [](std::string_view) {}),
                         doctest::Contains(text), Error);
    CHECK(state.length() == 0);
  };
  refuse({}, {}, "generate: ids: expected at least one token");
  refuse(Ids(21, 5), {}, "the capacity is 20 positions, got 21");
  refuse({605}, {}, "ids: expected ids from 0 to 604, got 605");
  refuse({-1}, {}, "ids: expected ids from 0 to 604, got -1");
  refuse({5}, {.temperature = -1.f}, "temperature");
  refuse({5}, {.temperature = std::numeric_limits<float>::quiet_NaN()}, "temperature");
  refuse({5}, {.top_k = -1}, "top_k");
  refuse({5}, {.top_p = 0.f}, "top_p");
  refuse({5}, {.top_p = 1.5f}, "top_p");
}
TEST_CASE("a prompt as text, and a second turn on a state that holds the first") {
  Fixture f;
  const auto nothing = [](std::string_view) {};
  const Generation by_text = generate(f.model, f.tokenizer, "The quick brown fox", {.max_tokens = 12}, nothing);
  CHECK(by_text.ids == f.by_hand(12));
  std::string longer;
  for (int i = 0; i < 200; ++i) longer += "fox ";
  CHECK_THROWS_WITH_AS(generate(f.model, f.tokenizer, longer, {}, nothing), doctest::Contains("the capacity is 96"),
                       Error);
  State state(f.model, {.capacity = 90});
  const Generation first = generate(f.model, state, f.tokenizer, f.prompt, {.max_tokens = 6}, nothing);
  CHECK(state.length() == static_cast<int>(f.prompt.size()) + 5);  // the last token has not been read yet
  Ids turn{first.ids.back()};
  const Ids more = f.tokenizer.encode(" over the dog");
  turn.insert(turn.end(), more.begin(), more.end());
  const Generation second = generate(f.model, state, f.tokenizer, turn, {.max_tokens = 6}, nothing);
  Ids whole = f.prompt;
  whole.insert(whole.end(), first.ids.begin(), first.ids.end());
  whole.insert(whole.end(), more.begin(), more.end());
  State fresh(f.model, {.capacity = 90});
  CHECK(generate(f.model, fresh, f.tokenizer, whole, {.max_tokens = 6}, nothing).ids == second.ids);
}
