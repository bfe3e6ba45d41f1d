// test: timeout=600
// A real model, SmolLM2-135M-Instruct from its GGUF, against transformers: every hidden state and the logits of a
// prompt, the greedy answer to a question, the text as it streams. Skipped where the file is not.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "reference/safetensors.hpp"
#include "tolerance.hpp"
#include "typeformer/cpu.hpp"
#include "typeformer/family/llama.hpp"
#include "typeformer/text.hpp"

namespace {

using namespace typeformer;
using M = SmolLM2_135M;
using Json = nlohmann::json;

/// The model's file; empty when this machine has none.
std::string model_path() {
  const char* path = std::getenv("TYPEFORMER_SMOLLM2");
  if (!path) MESSAGE("skipped: TYPEFORMER_SMOLLM2 names no file");
  return path ? path : "";
}
const Json& golden() {
  static const Json json =
      Json::parse(reference::read_file(std::string(std::getenv("TYPEFORMER_GOLDEN")) + "/smollm2.json"));
  return json;
}
cpu::Device& device() {
  static cpu::Device on;
  return on;
}
const Model<M, cpu::Device>& model() {
  static const auto loaded = load<M>(device(), model_path());
  return loaded;
}

/// Element `index` of the golden's random signs (tests/golden/README.md).
double sign(std::uint64_t index) {
  std::uint64_t z = golden().at("seed").get<std::uint64_t>() + index * 0x9E3779B97F4A7C15ull;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  z ^= z >> 31;
  return z >> 63 ? -1 : 1;
}
double projection(std::size_t k, std::span<const float> x) {
  double sum = 0;
  for (std::size_t v = 0; v < x.size(); ++v) sum += sign(k * x.size() + v) * double{x[v]};
  return sum;
}
/// A sum of n errors with random signs exceeds five times their norm once in two million draws.
constexpr double most_of_a_projection = 5;

double norm(std::span<const float> x) {
  double sum = 0;
  for (const float value : x) sum += double{value} * double{value};
  return std::sqrt(sum);
}
double log_sum_exp(std::span<const float> x) {
  const double highest = *std::max_element(x.begin(), x.end());
  double sum = 0;
  for (const float value : x) sum += std::exp(double{value} - highest);
  return highest + std::log(sum);
}

/// Ours may be twice as far from f64 as HuggingFace's f32 is, plus a floor; the golden values are HuggingFace's.
double relative_bound(double noise) { return 3 * noise + tolerance::f32_roundoff * std::sqrt(double{M::dims.d_ff}); }

void near(double ours, double expected, double bound, const std::string& what) {
  CHECK_MESSAGE(std::fabs(ours - expected) <= bound, what, ": ", ours, ", transformers ", expected, ", bound ", bound);
}

/// The prompt's hidden states by HuggingFace's count, and its logits.
struct Prompt {
  std::map<int, std::vector<float>> hidden;
  Logits logits;
  Prompt() {
    const auto ids = golden().at("prompt").at("ids").get<std::vector<std::int32_t>>();
    const int length = static_cast<int>(ids.size());
    logits = forward(model(), Batch{ids, std::span(&length, 1)}, [this](const Observed<float>& o) {
      constexpr int last = M::dims.n_layers;
      const int index = o.name == "embedding"                      ? 0
                        : o.name == "hidden" && o.layer + 1 < last ? o.layer + 1
                        : o.name == "final_norm"                   ? last
                                                                   : -1;
      if (index >= 0) hidden[index].assign(o.data, o.data + o.rows * o.width);
    });
  }
};
const Prompt& prompt() {
  static const Prompt result;
  return result;
}

void check_position(std::size_t t, double bound) {
  const Json& expected = golden().at("prompt").at("positions").at(t);
  const auto logits = prompt().logits[static_cast<std::int64_t>(t)];
  const std::string at = "position " + std::to_string(t);
  near(log_sum_exp(logits), expected.at("log_sum_exp"), bound, at + ", log-sum-exp");
  const auto top = expected.at("top_ids").get<std::vector<std::size_t>>();
  const auto values = expected.at("top_logits").get<std::vector<double>>();
  for (std::size_t i = 0; i < top.size(); ++i)
    near(double{logits[top[i]]}, values[i], bound, at + ", logit of " + std::to_string(top[i]));
  for (std::size_t id = 0; id < logits.size(); ++id)
    if (std::find(top.begin(), top.end(), id) == top.end() && double{logits[id]} > values.back() + bound)
      FAIL_CHECK(at << ": token " << id << " is not among transformers' best eight");
  for (std::size_t k = 0; k < 4; ++k)
    near(projection(k, logits), expected.at("projections").at(k),
         most_of_a_projection * std::sqrt(static_cast<double>(logits.size())) * bound,
         at + ", projection " + std::to_string(k));
}

}  // namespace

TEST_CASE("hidden states of every layer over a prompt of 64 tokens") {
  if (model_path().empty()) return;
  const Json& layers = golden().at("prompt").at("hidden");
  REQUIRE(layers.size() == static_cast<std::size_t>(M::dims.n_layers) + 1);
  REQUIRE(prompt().hidden.size() == layers.size());
  for (const auto& [layer, hidden] : prompt().hidden) {
    const Json& expected = layers.at(static_cast<std::size_t>(layer));
    const double size = expected.at("norm"), bound = relative_bound(expected.at("noise")) * size;
    CHECK(bound < tolerance::deep_model_ceiling * size);
    const std::string at = "hidden state " + std::to_string(layer);
    near(norm(hidden), size, bound, at + ", norm");
    for (std::size_t k = 0; k < 4; ++k)
      near(projection(k, hidden), expected.at("projections").at(k), most_of_a_projection * bound,
           at + ", projection " + std::to_string(k));
  }
}

TEST_CASE("logits at every position") {
  if (model_path().empty()) return;
  const Json& expected = golden().at("prompt");
  double largest = 0;
  for (const Json& position : expected.at("positions"))
    largest = std::max(largest, position.at("largest").get<double>());
  const double bound = relative_bound(expected.at("logits_noise").at(1)) * largest;
  CHECK(bound < tolerance::deep_model_ceiling * largest);
  REQUIRE(prompt().logits.rows() == 64);
  for (std::size_t t = 0; t < 64; ++t) check_position(t, bound);
}

TEST_CASE("the greedy answer to a question, token for token, as ids, text and stream") {
  if (model_path().empty()) return;
  const Json& chat = golden().at("chat");
  const Tokenizer tokenizer(model_path());
  const auto expected = chat.at("new_ids").get<std::vector<std::int32_t>>();
  std::string streamed;
  const GenerateOptions options{.max_tokens = static_cast<int>(expected.size())};
  const Generation answer = generate(model(), tokenizer, chat.at("question").get<std::string>(), options,
                                     [&](std::string_view piece) { streamed += piece; });
  CHECK(answer.prompt_ids == chat.at("prompt_ids").get<std::vector<std::int32_t>>());
  CHECK(answer.ids == expected);
  CHECK(answer.text == chat.at("text").get<std::string>());
  CHECK(streamed == answer.text);
  CHECK(streamed == tokenizer.decode(answer.ids));
  CHECK_FALSE(answer.stopped);
  CHECK(answer.decode_tokens_per_second() > 0);
}

TEST_CASE("weights in bf16: the f32 network of the rounded weights, bit for bit") {
  if (model_path().empty()) return;
  LoadReport report;
  const auto small = load<M, bf16>(device(), model_path(), {.report = &report});
  CHECK(report.bytes < 280'000'000);
  CHECK(report.parameters == M::parameter_count);
  auto ids = golden().at("chat").at("prompt_ids").get<std::vector<std::int32_t>>();
  const std::size_t prompt_length = ids.size();
  const auto answer = golden().at("chat").at("new_ids").get<std::vector<std::int32_t>>();
  ids.insert(ids.end(), answer.begin(), answer.end() - 1);
  const int length = static_cast<int>(ids.size());
  const Batch batch{ids, std::span(&length, 1)};
  const Logits ours = forward(small, batch), exact = forward(model(), batch);
  std::size_t equal = 0;
  double worst = 0, largest = 0;
  for (std::int64_t t = 0; t < ours.rows(); ++t) {
    const auto a = ours[t], b = exact[t];
    for (std::size_t i = 0; i < a.size(); ++i) {
      worst = std::max(worst, std::fabs(double{a[i]} - double{b[i]}));
      largest = std::max(largest, std::fabs(double{b[i]}));
    }
    const auto best = std::max_element(a.begin(), a.end()) - a.begin();
    if (t + 1 >= static_cast<std::int64_t>(prompt_length))
      equal += best == answer[static_cast<std::size_t>(t + 1) - prompt_length];
  }
  // The 61 products of a residual stream each add an error of about the weights' rounding, independent of the others.
  CHECK(worst < tolerance::bf16_roundoff * std::sqrt(2. * M::dims.n_layers + 1) * largest);
  MESSAGE("bf16 weights: ", equal, " of ", answer.size(), " next tokens as in f32; largest difference of a logit ",
          worst, " of ", largest);
  auto rounded = load<M>(device(), model_path());
  for (const Parameter& p : parameters<M>) {
    if (!p.matrix) continue;
    auto values = rounded.weights().get(p);
    for (float& value : values) value = to_float(from_float<bf16>(value));
    rounded.weights().set(p, values);
  }
  CHECK(forward(rounded, batch).values == ours.values);
}
