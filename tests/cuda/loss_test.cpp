// shape_logits and cross_entropy against the judge and PyTorch: factor, soft cap, z-loss, smoothing, ignored labels;
// vocabularies around the accesses and blocks, rows that begin anywhere, grids in pieces; infinities and NaN as on the
// CPU.
#include "loss.hpp"

#include <algorithm>

#include "reference/gradient.hpp"
#include "support.hpp"
#include "typeformer/cpu.hpp"
#include "typeformer/kernel/cuda/tuning.hpp"

namespace {

using loss::Case;
using loss::Inputs;
using loss::Results;
using reference::Tensor;
using support::Number;
using Sizes = std::vector<std::size_t>;

template <class N>
N shaped(const Case& c, const N& logit) {
  using std::tanh;
  const N scaled = logit * reference::constant<N>(c.factor), cap = reference::constant<N>(c.cap);
  return c.cap > 0 ? cap * tanh(scaled / cap) : scaled;
}

/// Losses of the rows; the input is [rows, vocab].
struct Formula {
  const Case& c;
  const std::vector<std::int32_t>& labels;

  template <class N>
  Tensor<N> operator()(const std::vector<Tensor<N>>& in) const {
    reference::LossOptions options;
    options.z_loss = double{c.z_loss};
    options.label_smoothing = double{c.smoothing};
    Tensor<N> losses({c.rows, 1});
    for (std::size_t r = 0; r < c.rows; ++r) {
      losses(r, 0) = in[0](r, 0) * reference::constant<N>(0);  // ignored: on the tape, without a slope
      if (labels[r] < 0) continue;
      std::vector<N> z;
      for (std::size_t i = 0; i < c.vocab; ++i) z.push_back(shaped(c, in[0](r, i)));
      losses(r, 0) = reference::token_loss(options, z.data(), c.vocab, static_cast<std::size_t>(labels[r]));
    }
    return losses;
  }
};

template <class N>
Results judge(const Case& c, const Inputs& in) {
  const Formula formula{c, in.labels};
  const std::vector<Tensor<N>> inputs{reference::convert<N>(in.logits)};
  Tensor<N> seed({c.rows, 1});
  for (N& value : seed.data) value = static_cast<N>(c.gradient_scale);
  const auto gradients = reference::pullback(formula, inputs, seed);
  return {reference::convert<double>(formula(inputs)).data, reference::convert<double>(gradients[0]).data, {}, {}};
}

Inputs draw(Number number, const Case& c, double deviation = 3, double mean = 0) {
  reference::Random random(c.rows * 100000 + c.vocab);
  Inputs in{support::draw(number, random, {c.rows, c.vocab}, deviation, mean), {}};
  for (std::size_t r = 0; r < c.rows; ++r)
    in.labels.push_back(random.below(5) == 0 ? -100 : static_cast<std::int32_t>(random.below(c.vocab)));
  return in;
}

/// The terms of a loss: they cancel where the label is all but certain.
double largest_term(const Case& c, const Inputs& in) {
  double largest = 0;
  for (const double logit : in.logits.data) largest = std::fmax(largest, std::fabs(shaped(c, logit)));
  const double log_z = largest + std::log(static_cast<double>(c.vocab));
  return log_z + double{c.z_loss} * log_z * log_z;
}

/// The terms of a gradient: a probability with the slope of the z-loss, and the target.
double largest_gradient(const Case& c, const Inputs& in) {
  const double slope =
      1 + 2 * double{c.z_loss} * largest_term({.vocab = c.vocab, .factor = c.factor, .cap = c.cap}, in);
  return slope * double{c.factor} * double{c.gradient_scale};
}

void check(Number number, const Case& c, double deviation = 3, double mean = 0) {
  CAPTURE(c.rows);
  CAPTURE(c.vocab);
  CAPTURE(c.shift);
  CAPTURE(c.cap);
  CAPTURE(c.smoothing);
  const Inputs in = draw(number, c, deviation, mean);
  const Results expected = judge<double>(c, in), naive = judge<float>(c, in), ours = loss::run(number, c, in);
  support::compare(Number::f32, "loss", expected.loss, naive.loss, ours.loss, 16,
                   std::max(1., largest_term(c, in)));  // 1: the largest exponential, behind the logarithm
  CHECK((ours.loss_alone == ours.loss && ours.logits_alone == in.logits.data));
  support::compare(number, "gradient", expected.gradient, naive.gradient, ours.gradient, 16,
                   c.vocab == 1            ? double{c.gradient_scale} * double{c.factor}  // 1 - 1, times these
                   : number == Number::f32 ? largest_gradient(c, in)
                                           : 0);
}

Case varied(reference::Random& random, std::size_t rows, std::size_t vocab) {
  Case c{.rows = rows, .vocab = vocab};
  if (random.below(3) == 0) c.factor = .0625f;
  if (random.below(3) == 0) c.cap = 5.f;
  if (random.below(3) == 0) c.z_loss = 1e-2f;
  if (random.below(3) == 0) c.smoothing = .125f;
  if (random.below(3) == 0) c.gradient_scale = 1.f / 37;
  c.shift = random.below(3) ? 0 : random.below(8);
  c.grid_limit = random.below(3) ? 0 : 1 + static_cast<int>(random.below(4));
  return c;
}

TEST_CASE("loss: random shapes") {
  reference::Random random(45);  // first: the host's device memory grows, and with it the time of every access
  const int cases = support::random_cases(1000);
  for (int i = 0; i < cases; ++i) {
    const std::size_t vocab = 1 + random.below(random.below(4) ? 40 : 400);
    check(random.below(2) ? Number::f32 : Number::bf16, varied(random, random.below(7), vocab));
  }
}

TEST_CASE("loss: vocabularies around accesses and blocks") {
  reference::Random random(46);
  for (const std::size_t vocab :
       Sizes{1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 255, 256, 257, 511, 512, 513, 1023, 1024, 1025})
    for (const Number number : {Number::f32, Number::bf16}) check(number, varied(random, 3, vocab));
  for (const std::size_t vocab : Sizes{4095, 4096, 4097, 8192, 16391, 32000})
    for (const Number number : {Number::f32, Number::bf16}) check(number, varied(random, 2, vocab));
}

TEST_CASE("loss: rows that begin anywhere") {
  for (std::size_t shift = 0; shift < 8; ++shift)
    for (const std::size_t vocab : Sizes{5, 29, 64, 131})
      for (const Number number : {Number::f32, Number::bf16})
        check(number, {.rows = 5, .vocab = vocab, .smoothing = .1f, .shift = shift, .grid_limit = 2});
}

TEST_CASE("loss: every option, alone and together") {
  for (const Number number : {Number::f32, Number::bf16}) {
    check(number, {.rows = 4, .vocab = 100, .factor = .25f});
    for (const float cap : {.5f, 3.f}) check(number, {.rows = 4, .vocab = 100, .cap = cap});
    check(number, {.rows = 4, .vocab = 100, .z_loss = .1f});
    check(number, {.rows = 4, .vocab = 100, .smoothing = .2f});
    check(number, {.rows = 4, .vocab = 100, .smoothing = 1.f});
    check(number, {.rows = 4, .vocab = 100, .gradient_scale = -2.f});
    check(number, {.factor = .5f, .cap = 30.f, .z_loss = 1e-4f, .smoothing = .1f, .gradient_scale = .01f});
    check(number, {.rows = 7, .vocab = 1000, .factor = 2.f, .cap = 30.f, .z_loss = 1e-4f, .smoothing = .1f}, 8);
  }
}

TEST_CASE("loss: far logits do not overflow, and rise from left to right") {
  for (const Number number : {Number::f32, Number::bf16}) {
    check(number, {.rows = 5, .vocab = 300}, 1000);
    check(number, {.rows = 5, .vocab = 300}, 3, -500);  // all of them below zero
  }
  const Case c{.rows = 1, .vocab = 4096};
  Inputs in{Tensor<double>({1, 4096}), {17}};
  for (std::size_t i = 0; i < c.vocab; ++i) in.logits.data[i] = static_cast<double>(i) / 16;
  const Results expected = judge<double>(c, in), naive = judge<float>(c, in), ours = loss::run(Number::f32, c, in);
  support::compare(Number::f32, "loss", expected.loss, naive.loss, ours.loss, 16);
  support::compare(Number::f32, "gradient", expected.gradient, naive.gradient, ours.gradient, 16);
}

/// "nan", "+inf", "-inf" or "finite" for each number. What is not finite because sums of finite numbers overflow is
/// "too large": infinite or NaN, as the compiler contracts them.
std::string kinds(const std::vector<double>& numbers, bool overflow) {
  std::string text;
  for (const double x : numbers)
    text += std::isfinite(x) ? "finite " : overflow ? "too large " : std::isnan(x) ? "nan " : x > 0 ? "+inf " : "-inf ";
  return text;
}

TEST_CASE("loss: infinities and NaN as on the CPU") {
  constexpr double inf = INFINITY;
  const std::vector<std::vector<double>> rows = {
      {-inf, 1, 2, -inf, 3}, {1, inf, 2, 3, 4},           {1, inf, inf, 3, -inf},      {-inf, -inf, -inf, -inf, -inf},
      {NAN, 1, 2, 3, 4},     {1, 2, 3, 4, NAN},           {-inf, NAN, -inf, -inf, 1},  {NAN, NAN, NAN, NAN, NAN},
      {1, 2, 3, -inf, -inf}, {-inf, -inf, -inf, -inf, 0}, {3e38, 3e38, -3e38, 0, 3e38}};
  for (const float cap : {0.f, 4.f})
    for (const float smoothing : {0.f, .1f})
      for (const float factor : {1.f, 3.f})
        for (std::int32_t label = -1; label < 5; ++label)
          for (const auto& row : rows) {
            const Case c{.vocab = 5, .factor = factor, .cap = cap, .z_loss = .01f, .smoothing = smoothing};
            Inputs in{Tensor<double>({1, 5}), {label}};
            in.logits.data = row;
            std::vector<float> logits(row.begin(), row.end()), losses(1);
            typeformer::cpu::Device cpu;
            typeformer::CrossEntropyArgs<float> a;
            a.logits = logits.data();
            a.labels = in.labels.data();
            a.loss = losses.data();
            a.rows = 1;
            a.vocab = 5;
            a.factor = factor;
            a.cap = cap;
            a.z_loss = .01f;
            a.smoothing = smoothing;
            a.gradient = true;
            cross_entropy(cpu, a);
            const Results ours = loss::run(Number::f32, c, in);
            const bool overflow = row[0] == 3e38;
            CHECK(kinds(ours.loss, overflow) == kinds({losses.begin(), losses.end()}, overflow));
            CHECK(kinds(ours.gradient, overflow) == kinds({logits.begin(), logits.end()}, overflow));
          }
}

TEST_CASE("loss: offsets of more than 32 bits") {
  for (const Number number : {Number::f32, Number::bf16}) {
    const Case c{.rows = 3, .vocab = 64};
    const Inputs in = draw(number, c);
    const Results near = loss::run(number, c, in), far = loss::run_far(number, c, in);
    CHECK((far.loss == near.loss && far.gradient == near.gradient));
  }
}

TEST_CASE("loss: as PyTorch") {
  for (const char* file : {"cross_entropy", "cross_entropy_z_loss", "cross_entropy_softcap"})
    for (const Number number : {Number::f32, Number::bf16}) {
      CAPTURE(file);
      const auto golden = support::golden(file);
      const auto field = [&](const char* name) { return static_cast<float>(golden.at(name).data[0]); };
      const Inputs in{golden.at("logits"), {golden.at("labels").data.begin(), golden.at("labels").data.end()}};
      const Case c{.rows = in.logits.rows(),
                   .vocab = in.logits.columns(),
                   .factor = field("factor"),
                   .cap = field("cap"),
                   .z_loss = field("z_loss"),
                   .smoothing = field("smoothing"),
                   .gradient_scale = field("gradient_scale")};
      const Results ours = loss::run(number, c, in);
      support::compare_with_golden(Number::f32, "loss", golden, ours.loss);  // of bf16 logits too
      support::compare_with_golden(number, "dlogits", golden, ours.gradient);
    }
}

TEST_CASE("loss: two runs are alike") {
  for (const Number number : {Number::f32, Number::bf16}) {
    const Case c{.rows = 3, .vocab = 5003, .cap = 20.f, .z_loss = .01f, .smoothing = .1f};
    const Inputs in = draw(number, c);
    const Results one = loss::run(number, c, in), two = loss::run(number, c, in);
    CHECK((one.loss == two.loss && one.gradient == two.gradient));
  }
}

TEST_CASE("loss: shape_logits") {
  for (const std::size_t count : Sizes{0, 1, 3, 4, 5, 1023, 1024, 1025, 3001})
    for (const std::size_t shift : Sizes{0, 1}) {
      CAPTURE(count);
      reference::Random random(count + 1);
      const auto logits = support::draw(Number::f32, random, {count}, 20).data;
      for (const Case& c : {Case{.factor = .25f, .cap = 5.f, .shift = shift}, Case{.factor = 3.f, .grid_limit = 1},
                            Case{.cap = 30.f, .shift = shift, .grid_limit = 2}, Case{.shift = shift}, Case{.cap = .5f},
                            Case{.factor = 0.f}}) {
        std::vector<double> expected, naive;
        for (const double logit : logits) {
          expected.push_back(shaped(c, logit));
          naive.push_back(static_cast<double>(shaped(c, static_cast<float>(logit))));
        }
        support::compare(Number::f32, "logits", expected, naive, loss::shape_logits(c, logits), 4);
      }
    }
}

TEST_CASE("loss: threads of a row") {
  using typeformer::cuda::detail::loss_threads;
  for (int vocab = 1; vocab < 300000; vocab += vocab < 5000 ? 1 : 1009)
    for (const int elements : {4, 8}) {
      const int threads = loss_threads(vocab, elements);
      CHECK((threads % 32 == 0 && threads >= 64 && threads <= typeformer::cuda::detail::loss_most_threads));
    }
}

TEST_CASE("loss: nothing to do, and wrong arguments") {
  loss::run_nothing();
  CHECK(loss::complaint("rows") == "cross_entropy: rows: expected 0 or more, got -1");
  CHECK(loss::complaint("vocab") == "cross_entropy: vocab: expected 1 or more, got 0");
  CHECK(loss::complaint("null") == "cross_entropy: logits, labels, loss: expected arrays, got null");
  CHECK(loss::complaint("shape") == "shape_logits: y: expected an array, got null");
  CHECK(loss::complaint("count") == "shape_logits: count: expected 0 or more, got -3");
}

}  // namespace
