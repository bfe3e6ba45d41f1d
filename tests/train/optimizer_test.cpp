// AdamW, clipping and the schedule against PyTorch and transformers (tests/golden/formulas.json, in f64).
#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "policy/golden_json.hpp"
#include "typeformer/cpu.hpp"
#include "typeformer/train.hpp"

using namespace typeformer;

namespace {

constexpr double unit = 0x1p-24;  // of f32's rounding

/// A composition whose table begins with a matrix and has vectors.
using Tiny = Transformer<Dims{.vocab = 3, .d_model = 4, .n_layers = 2, .d_ff = 4, .max_seq = 8}, LayerNorm{}, GELU{},
                         LearnedPositions{}, MHA(2), PreNorm{}, Biases{}>;

std::vector<float> floats(const nlohmann::json& numbers) {
  std::vector<float> result;
  for (const double number : numbers.get<std::vector<double>>()) result.push_back(static_cast<float>(number));
  return result;
}

/// Every parameter filled with the numbers of `pattern`, again and again.
void fill(ParameterArena<Tiny, cpu::Device>& arena, const std::vector<float>& pattern) {
  for (const Parameter& p : parameters<Tiny>) {
    std::vector<float> values(static_cast<std::size_t>(p.size()));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = pattern[i % pattern.size()];
    arena.set(p, values);
  }
}

}  // namespace

TEST_CASE("AdamW follows PyTorch's for every parameter, with decay for matrices only") {
  const auto table = golden_formulas("adamw");
  const auto start = floats(table["weight"]);
  for (const auto& c : table["cases"]) {
    cpu::Device device(2);
    Model<Tiny, cpu::Device> model(device);
    fill(model.weights(), start);
    AdamW optimizer(model, {.beta1 = c["beta1"], .beta2 = c["beta2"], .eps = c["eps"], .weight_decay = c["decay"]});
    Gradients<Tiny, cpu::Device> gradients(device);
    std::vector<double> sizes(start.size(), 0.);  // the running mean of |g|: what m's rounding errors are relative to
    for (std::size_t t = 0; t < c["steps"].size(); ++t) {
      const auto& expected = c["steps"][t];
      const auto gradient = floats(table["gradients"][t]);
      fill(gradients, gradient);
      optimizer.step(model, gradients, {.learning_rate = expected["learning_rate"].get<float>()});
      CHECK(optimizer.steps() == static_cast<int>(t) + 1);
      const double beta1 = c["beta1"];
      for (std::size_t j = 0; j < sizes.size(); ++j)
        sizes[j] = beta1 * sizes[j] + (1 - beta1) * std::fabs(double{gradient[j]});
      for (const Parameter& p : parameters<Tiny>) {
        if (!p.decays && c["decay"].get<double>() != 0) continue;  // the table's numbers have decayed
        const auto weight = model.weights().get(p), m = optimizer.first_moments().get(p),
                   v = optimizer.second_moments().get(p);
        for (std::size_t i = 0; i < weight.size(); ++i) {
          const auto j = i % start.size();
          const double w = expected["weight"][j], second = expected["v"][j];
          // Per step: two products and a sum for m; one product more for v.
          CHECK(std::fabs(m[i] - expected["m"][j].get<double>()) <= 15 * unit * sizes[j]);
          CHECK(std::fabs(v[i] - second) <= 20 * unit * second);
          // Five updates, each below .1 with a relative error below 40 units, and five roundings of the weight.
          CHECK(std::fabs(weight[i] - w) <= unit * (20 + 5 * std::fabs(w)));
        }
      }
    }
  }
}

TEST_CASE("weight decay reaches matrices and embeddings, and nothing else") {
  cpu::Device device(1);
  Model<Tiny, cpu::Device> model(device);
  fill(model.weights(), {.5f});
  AdamW optimizer(model, {.weight_decay = .5f});
  const Gradients<Tiny, cpu::Device> none(device);
  optimizer.step(model, none, {.learning_rate = .1f});
  for (const Parameter& p : parameters<Tiny>) {
    CAPTURE(p.name());
    const float expected = p.name().ends_with("bias") || p.name().find("ln") != std::string::npos ? .5f : .475f;
    for (const float weight : model.weights().get(p)) CHECK(weight == doctest::Approx(expected).epsilon(1e-6));
  }
  CHECK(optimizer.options().learning_rate == AdamWOptions{}.learning_rate);
}

TEST_CASE("a step without a rate takes the options', and a gradient's factor is as good as a scaled gradient") {
  cpu::Device device(1);
  Model<Tiny, cpu::Device> a(device), b(device);
  initialize(a, 3);
  initialize(b, 3);
  Gradients<Tiny, cpu::Device> whole(device), half(device);
  fill(whole, {.5f, -2.f, 8.f});
  fill(half, {.25f, -1.f, 4.f});
  AdamW first(a, {.learning_rate = .01f}), second(b);
  for (int i = 0; i < 3; ++i) {
    first.step(a, half);
    second.step(b, whole, {.learning_rate = .01f, .gradient_scale = .5f});
  }
  for (const Parameter& p : parameters<Tiny>) CHECK(a.weights().get(p) == b.weights().get(p));
}

TEST_CASE("the global norm and its clipping are PyTorch's clip_grad_norm_") {
  const auto table = golden_formulas("clipping");
  cpu::Device device(2);
  Gradients<Tiny, cpu::Device> gradients(device);
  const auto groups = table["gradients"].get<std::vector<std::vector<double>>>();
  // Two matrices and a vector of the composition hold the three tensors; their rest stays zero.
  const char* names[] = {"layers.1.attn.output_proj.weight", "ln_final.bias", "token_embeddings.weight"};
  for (std::size_t g = 0; g < groups.size(); ++g)
    gradients.set(gradients.find(names[g]), std::vector<float>(groups[g].begin(), groups[g].end()));
  {
    cpu::Device other(1);
    CHECK_THROWS_AS(gradient_norm(other, gradients), Error);
  }
  const float norm = gradient_norm(device, gradients);
  for (const auto& c : table["cases"]) {
    CHECK(norm == doctest::Approx(c["norm"].get<double>()).epsilon(2 * unit));
    const float scale = clip_scale(norm, c["limit"].get<float>());
    for (std::size_t g = 0; g < groups.size(); ++g)
      for (std::size_t i = 0; i < groups[g].size(); ++i)
        CHECK(double{scale} * groups[g][i] == doctest::Approx(c["clipped"][g][i].get<double>()).epsilon(4 * unit));
  }
  CHECK(clip_scale(0.f, 1.f) == 1.f);
  CHECK(std::isnan(clip_scale(NAN, 1.f)));
}

TEST_CASE("the cosine with its warm-up is transformers'") {
  for (const auto& row : golden_formulas("schedules")) {
    if (row["name"] != "cosine") continue;
    const CosineSchedule schedule{.peak = 1.f, .warmup = row["warmup"], .total = row["total"]};
    for (std::size_t step = 0; step < row["factors"].size(); ++step)
      CHECK(schedule.rate(static_cast<std::int64_t>(step)) ==
            doctest::Approx(row["factors"][step].get<double>()).epsilon(2 * unit).scale(1));
    const CosineSchedule tenth{.peak = 2.f, .warmup = row["warmup"], .total = row["total"], .final_share = .1f};
    for (std::size_t step = 5; step < row["factors"].size(); ++step)
      CHECK(tenth.rate(static_cast<std::int64_t>(step)) ==
            doctest::Approx(2 * (.1 + .9 * row["factors"][step].get<double>())).epsilon(4 * unit));
    CHECK(tenth.rate(1000) == doctest::Approx(.2));
    return;
  }
  FAIL("no schedule of that name in the table");
}

TEST_CASE("what an optimizer cannot use is refused before anything changes") {
  cpu::Device device(1);
  Model<Tiny, cpu::Device> model(device);
  initialize(model, 1);
  const Gradients<Tiny, cpu::Device> gradients(device);
  AdamW optimizer(model);
  const auto before = model.weights().get(parameters<Tiny>[0]);
  CHECK_THROWS_WITH_AS(optimizer.step(model, gradients, {.learning_rate = .1f, .gradient_scale = NAN}),
                       "AdamW::step: gradient_scale: expected a finite number, got nan", Error);
  CHECK_THROWS_AS(optimizer.step(model, gradients, {.learning_rate = -.1f}), Error);
  CHECK_THROWS_AS(optimizer.step(model, gradients, {.learning_rate = INFINITY}), Error);
  cpu::Device other(1);
  Model<Tiny, cpu::Device> elsewhere(other);
  CHECK_THROWS_AS(optimizer.step(elsewhere, gradients), Error);
  const CosineSchedule endless{.peak = 1e-3f}, overlong{.warmup = 5, .total = 4};
  CHECK_THROWS_AS((void)endless.rate(0), Error);
  CHECK_THROWS_AS((void)overlong.rate(0), Error);
  CHECK_THROWS_AS((void)model.weights().stack("encoder."), Error);
  CHECK(optimizer.steps() == 0);
  CHECK(model.weights().get(parameters<Tiny>[0]) == before);
  const auto make = [&](const AdamWOptions& options) { AdamW<Tiny, cpu::Device> refused(device, options); };
  CHECK_THROWS_AS(make({.learning_rate = -1.f}), Error);
  CHECK_THROWS_AS(make({.beta1 = 1.f}), Error);
  CHECK_THROWS_AS(make({.beta2 = -.1f}), Error);
  CHECK_THROWS_AS(make({.eps = 0.f}), Error);
  CHECK_THROWS_AS(make({.weight_decay = NAN}), Error);
  CHECK_THROWS_AS(optimizer.set_steps(-1), Error);
}
