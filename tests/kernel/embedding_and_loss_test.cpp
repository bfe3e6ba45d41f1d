// test: sanitize
// Embedding rows, logits and their loss, sums and the optimizer's update alone, against the judge and PyTorch's tables.
#include <string>

#include "kernel/support.hpp"
#include "policy/golden_json.hpp"

namespace {

using namespace kernel_test;

/// z = cap tanh(factor x / cap), or factor x.
template <class T>
Numbers<T> shaped(const Numbers<T>& x, double factor, double cap) {
  using std::tanh;
  Numbers<T> z = x;
  for (T& value : z.data) {
    value = value * reference::constant<T>(factor);
    if (cap > 0) value = reference::constant<T>(cap) * tanh(value / reference::constant<T>(cap));
  }
  return z;
}

struct LossCase {
  std::size_t rows = 5, vocab = 11;
  double factor = 1, cap = 0, z_loss = 0, smoothing = 0, size = 2;
};
template <class T>
Numbers<T> row_losses(const LossCase& c, const Numbers<T>& logits, const std::vector<std::int32_t>& labels) {
  const reference::LossOptions options{c.z_loss, c.smoothing};
  const Numbers<T> z = shaped(logits, c.factor, c.cap);
  Numbers<T> loss({c.rows, 1});
  for (std::size_t r = 0; r < c.rows; ++r)
    loss(r, 0) = labels[r] < 0 ? reference::constant<T>(0)
                               : reference::token_loss(options, z.row(r), c.vocab, static_cast<std::size_t>(labels[r]));
  return loss;
}

/// Every third label is ignored.
void check_loss(cpu::Device& on, const LossCase& c, const std::string& name) {
  Random random(c.rows * 1000 + c.vocab);
  const auto logits = draw(random, c.rows, c.vocab, c.size);
  std::vector<std::int32_t> labels;
  for (std::size_t r = 0; r < c.rows; ++r)
    labels.push_back(r % 3 == 2 ? -100 : static_cast<std::int32_t>(random.below(c.vocab)));
  const double scale = .125;
  auto ours = floats(logits);
  std::vector<float> loss(c.rows, unset), again(c.rows, unset);
  CrossEntropyArgs<float> args{.logits = ours.data(),
                               .labels = labels.data(),
                               .loss = loss.data(),
                               .rows = static_cast<std::int64_t>(c.rows),
                               .vocab = static_cast<int>(c.vocab),
                               .factor = static_cast<float>(c.factor),
                               .cap = static_cast<float>(c.cap),
                               .z_loss = static_cast<float>(c.z_loss),
                               .smoothing = static_cast<float>(c.smoothing),
                               .gradient_scale = static_cast<float>(scale),
                               .gradient = true};
  cross_entropy(on, args);
  const auto f32 = reference::convert<float>(logits);
  const double magnitude = (1 + largest(logits) * std::fabs(c.factor)) * (1 + c.z_loss * 2 * (4 + largest(logits)));
  check(name + " loss", row_losses(c, logits, labels), row_losses(c, f32, labels), loss, c.vocab, magnitude);
  const auto pull = [&]<class T>(T) {
    Numbers<T> seed({c.rows, 1}, std::vector<T>(c.rows, T(scale)));
    return reference::pullback<T>([&](const auto& v) { return row_losses(c, v[0], labels); },
                                  {reference::convert<T>(logits)}, seed)[0];
  };
  check(name + " gradient", pull(double{}), pull(float{}), ours, c.vocab, scale * magnitude * std::fabs(c.factor));
  ours = floats(logits);
  args.logits = ours.data();
  args.loss = again.data();
  args.gradient = false;
  cross_entropy(on, args);
  CHECK_MESSAGE(again == loss, name, ": the loss without a gradient");
  for (std::size_t r = 2; r < c.rows; r += 3) CHECK(loss[r] == 0);
}

}  // namespace

TEST_CASE("gather_rows and its backward: offset, scale, repeated rows, every type of table") {
  cpu::Device on(3);
  for (const std::size_t width : widths) {
    Random random(width);
    const auto table = draw(random, 9, width), dy = draw(random, 6, width);
    const std::vector<std::int32_t> index{4, 0, 6, 4, 4, 1};
    const auto gather = [&]<class W>(W) {
      std::vector<W> stored;
      for (const double number : table.data) stored.push_back(from_float<W>(static_cast<float>(number)));
      std::vector<float> y(6 * width, 3.f), expected = y;
      GatherArgs<float, W> args{.y = y.data(),
                                .table = stored.data(),
                                .index = index.data(),
                                .tokens = 6,
                                .width = static_cast<int>(width),
                                .offset = 2,
                                .scale = 1.5f};
      for (const bool accumulate : {false, true}) {
        args.accumulate = accumulate;
        gather_rows(on, args);
        for (std::size_t t = 0; t < 6; ++t)
          for (std::size_t i = 0; i < width; ++i) {
            const float value = to_float(stored[(static_cast<std::size_t>(index[t]) + 2) * width + i]) * 1.5f;
            float& to = expected[t * width + i];
            to = accumulate ? to + value : value;
          }
        CHECK(y == expected);
      }
      args.tokens = 0;
      gather_rows(on, args);
      CHECK(y == expected);
    };
    gather(float{});
    gather(bf16{});
    gather(f16{});
    std::vector<float> dtable(9 * width, 1.f);
    const auto d = floats(dy);
    gather_rows_backward(on, GatherBackwardArgs<float>{.dtable = dtable.data(),
                                                       .dy = d.data(),
                                                       .index = index.data(),
                                                       .tokens = 6,
                                                       .width = static_cast<int>(width),
                                                       .offset = 2,
                                                       .scale = 1.5f});
    Numbers<double> judge({9, width}, std::vector<double>(9 * width, 1.));
    auto naive = reference::convert<float>(judge);
    for (std::size_t t = 0; t < 6; ++t)
      for (std::size_t i = 0; i < width; ++i) {
        judge(static_cast<std::size_t>(index[t]) + 2, i) += 1.5 * dy(t, i);
        naive(static_cast<std::size_t>(index[t]) + 2, i) += 1.5f * static_cast<float>(dy(t, i));
      }
    check("dtable", judge, naive, dtable, 4);
    gather_rows_backward(on, GatherBackwardArgs<float>{.dy = d.data(),  // a gradient that is not wanted
                                                       .index = index.data(),
                                                       .tokens = 6,
                                                       .width = static_cast<int>(width)});
  }
}

TEST_CASE("shape_logits") {
  cpu::Device on(2);
  for (const std::size_t count : {0u, 1u, 4095u, 4097u, 9000u})
    for (const auto& [factor, cap] : {std::pair{1., 0.}, std::pair{.125, 0.}, std::pair{.5, 3.}, std::pair{1., 30.}}) {
      Random random(count);
      const auto x = draw(random, count, 1, 20);
      auto y = floats(x);
      shape_logits(on, ShapeLogitsArgs{y.data(), static_cast<std::int64_t>(count), static_cast<float>(factor),
                                       static_cast<float>(cap)});
      check("shaped", shaped(x, factor, cap), shaped(reference::convert<float>(x), factor, cap), y, 4);
    }
}

TEST_CASE("cross_entropy: sizes, smoothing, z-loss, cap, large logits") {
  cpu::Device on(2);
  for (const std::size_t vocab : widths)
    for (const std::size_t rows : {0u, 1u, 5u}) {
      const std::string at = "[" + std::to_string(rows) + ", " + std::to_string(vocab) + "]";
      check_loss(on, {.rows = rows, .vocab = vocab}, at);
      check_loss(on, {.rows = rows, .vocab = vocab, .factor = .25, .cap = 3, .z_loss = .01, .smoothing = .1},
                 at + " all");
    }
  check_loss(on, {.rows = 7, .vocab = 1009, .size = 5}, "many classes");
  check_loss(on, {.rows = 7, .vocab = 101, .size = 1e4}, "large logits");
  check_loss(on, {.rows = 7, .vocab = 101, .cap = 30, .size = 1e3}, "large logits under a cap");
  check_loss(on, {.rows = 7, .vocab = 101, .z_loss = 1e-4, .size = 100}, "z-loss of large logits");
}

TEST_CASE("cross_entropy against PyTorch in f64") {
  cpu::Device on(2);
  const auto golden = golden_formulas("cross_entropy");
  const auto labels = golden.at("labels").get<std::vector<std::int32_t>>();
  const std::size_t rows = labels.size(), vocab = golden.at("logits").at(0).size();
  Numbers<double> logits({rows, vocab});
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t i = 0; i < vocab; ++i) logits(r, i) = golden.at("logits").at(r).at(i);
  for (const auto& c : golden.at("cases")) {
    auto ours = floats(logits);
    std::vector<float> loss(rows, unset);
    cross_entropy(on, CrossEntropyArgs<float>{.logits = ours.data(),
                                              .labels = labels.data(),
                                              .loss = loss.data(),
                                              .rows = static_cast<std::int64_t>(rows),
                                              .vocab = static_cast<int>(vocab),
                                              .factor = c.at("factor"),
                                              .cap = c.at("cap"),
                                              .z_loss = c.at("z_loss"),
                                              .smoothing = c.at("smoothing"),
                                              .gradient = true});
    for (std::size_t r = 0; r < rows; ++r) {
      double highest = 1;
      for (std::size_t i = 0; i < vocab; ++i) highest = std::max(highest, std::fabs(logits(r, i)));
      const double expected = c.at("loss").at(r), bound = 8 * tolerance::f32_roundoff * (highest + std::fabs(expected));
      CHECK(std::fabs(double{loss[r]} - expected) <= bound);
      for (std::size_t i = 0; i < vocab; ++i) {
        const double slope = c.at("gradient").at(r).at(i);
        // exp of a difference of two logits carries their rounding
        CHECK(std::fabs(double{ours[r * vocab + i]} - slope) <=
              8 * tolerance::f32_roundoff * (1 + highest) * (1 + std::fabs(slope)));
      }
    }
  }
}

TEST_CASE("adamw against PyTorch in f64, step by step") {
  cpu::Device on(2);
  const auto golden = golden_formulas("adamw");
  for (const auto& c : golden.at("cases")) {
    auto weight = golden.at("weight").get<std::vector<float>>();
    std::vector<float> m(weight.size()), v(weight.size());
    for (std::size_t step = 0; step < c.at("steps").size(); ++step) {
      const auto& expected = c.at("steps").at(step);
      auto gradient = golden.at("gradients").at(step).get<std::vector<float>>();
      for (float& g : gradient) g *= 4;  // exact, and undone by gradient_scale
      adamw(on, AdamWArgs{.weight = weight.data(),
                          .gradient = gradient.data(),
                          .m = m.data(),
                          .v = v.data(),
                          .count = static_cast<std::int64_t>(weight.size()),
                          .learning_rate = expected.at("learning_rate"),
                          .beta1 = c.at("beta1"),
                          .beta2 = c.at("beta2"),
                          .eps = c.at("eps"),
                          .decay = c.at("decay"),
                          .gradient_scale = .25f,
                          .step = static_cast<int>(step) + 1});
      for (std::size_t i = 0; i < weight.size(); ++i) {
        // each step rounds a few times; beta2's rounding in 1 - beta2^t weighs 1 / (1 - beta2)
        const auto near = [&](float ours, const char* field, double size) {
          const double wanted = expected.at(field).at(i);
          const double steps = static_cast<double>(step) + 1;
          CHECK(std::fabs(double{ours} - wanted) <= 16 * steps * tolerance::f32_roundoff * (std::fabs(wanted) + size));
        };
        near(weight[i], "weight", 1);
        near(m[i], "m", std::fabs(double{gradient[i]}) / 4);
        near(v[i], "v", double{gradient[i]} * double{gradient[i]} / 16);
      }
    }
  }
}

TEST_CASE("add and sum_of_squares") {
  cpu::Device on(3);
  for (const std::size_t count : {0u, 1u, 17u, 4096u, 4097u, 10000u}) {
    Random random(count);
    const auto a = floats(draw(random, count, 1)), b = floats(draw(random, count, 1));
    std::vector<float> expected, y(count, unset);
    double squares = 0;
    for (std::size_t i = 0; i < count; ++i) {
      expected.push_back(a[i] + b[i]);
      squares += double{a[i]} * double{a[i]};
    }
    const auto n = static_cast<std::int64_t>(count);
    add(on, AddArgs<float>{y.data(), a.data(), b.data(), n});
    CHECK(y == expected);
    auto in_place = a;
    add(on, AddArgs<float>{in_place.data(), in_place.data(), b.data(), n});
    CHECK(in_place == expected);
    in_place = b;
    add(on, AddArgs<float>{in_place.data(), a.data(), in_place.data(), n});
    CHECK(in_place == expected);
    CHECK(sum_of_squares(on, a.data(), n) == doctest::Approx(squares).epsilon(1e-12));
  }
  const std::vector<float> large(3, 1e30f);  // squares beyond float
  CHECK(sum_of_squares(on, large.data(), 3) == doctest::Approx(3e60).epsilon(1e-6));
}
