// add, adamw and sum_of_squares against plain loops: counts around accesses and blocks, unaligned arrays, grids in
// pieces, in place; several steps of the optimizer.
#include "elementwise.hpp"
#include "support.hpp"
#include "typeformer/kernel/cuda/tuning.hpp"

namespace {

using elementwise::Case;
using elementwise::Optimizer;
using elementwise::Weights;
using support::Number;
using Sizes = std::vector<std::size_t>;

constexpr std::size_t threads = typeformer::cuda::detail::flat_threads;
const std::size_t counts[] = {0,
                              1,
                              3,
                              4,
                              5,
                              8,
                              9,
                              threads - 1,
                              threads,
                              threads + 1,
                              4 * threads - 1,
                              4 * threads,
                              4 * threads + 1,
                              8 * threads,
                              8 * threads + 7};

void check_add(Number number, std::size_t count, const Case& c) {
  CAPTURE(count);
  CAPTURE(c.shift);
  reference::Random random(count + 1);
  const auto a = support::draw(number, random, {count}).data, b = support::draw(number, random, {count}).data;
  std::vector<double> expected;
  for (std::size_t i = 0; i < count; ++i) expected.push_back(support::rounded(number, a[i] + b[i]));
  const auto ours = elementwise::add(number, c, a, b);
  CHECK((ours.y == expected && ours.over_a == expected && ours.over_b == expected));
}

template <class N>
Weights judge(const Optimizer& o, const Weights& before, const std::vector<std::vector<double>>& gradients) {
  Weights after = before;
  for (std::size_t i = 0; i < before.weight.size(); ++i) {
    N w = static_cast<N>(before.weight[i]), m = static_cast<N>(before.m[i]), v = static_cast<N>(before.v[i]);
    const N b1 = static_cast<N>(o.beta1), b2 = static_cast<N>(o.beta2), lr = static_cast<N>(o.learning_rate);
    for (std::size_t t = 1; t <= gradients.size(); ++t) {
      const N g = static_cast<N>(o.gradient_scale) * static_cast<N>(gradients[t - 1][i]);
      m = b1 * m + (N(1) - b1) * g;
      v = b2 * v + (N(1) - b2) * g * g;
      const N m_hat = m / (N(1) - std::pow(b1, static_cast<N>(t))),
              v_hat = v / (N(1) - std::pow(b2, static_cast<N>(t)));
      w = w - lr * (m_hat / (std::sqrt(v_hat) + static_cast<N>(o.eps)) + static_cast<N>(o.decay) * w);
    }
    after.weight[i] = static_cast<double>(w);
    after.m[i] = static_cast<double>(m);
    after.v[i] = static_cast<double>(v);
  }
  return after;
}

void check_adamw(std::size_t count, std::size_t steps, const Optimizer& optimizer, const Case& c) {
  CAPTURE(count);
  CAPTURE(c.shift);
  reference::Random random(count * 10 + steps);
  const Weights before{support::draw(Number::f32, random, {count}).data, std::vector<double>(count),
                       std::vector<double>(count)};
  std::vector<std::vector<double>> gradients;
  for (std::size_t t = 0; t < steps; ++t)
    gradients.push_back(support::draw(Number::f32, random, {count}, t % 2 ? 1e-3 : 1).data);
  const Weights expected = judge<double>(optimizer, before, gradients),
                naive = judge<float>(optimizer, before, gradients),
                ours = elementwise::adamw(c, optimizer, before, gradients);
  support::compare(Number::f32, "weight", expected.weight, naive.weight, ours.weight, steps * 8);
  support::compare(Number::f32, "m", expected.m, naive.m, ours.m, steps * 3);
  support::compare(Number::f32, "v", expected.v, naive.v, ours.v, steps * 4);
}

/// Of products that double holds exactly, `count` sums err by half a unit each at most.
void check_sum(std::size_t count, const Case& c, double deviation) {
  CAPTURE(count);
  CAPTURE(c.shift);
  CAPTURE(c.grid_limit);
  reference::Random random(count + 3);
  const auto x = support::draw(Number::f32, random, {count}, deviation).data;
  long double expected = 0;
  for (const double value : x) expected += static_cast<long double>(value) * static_cast<long double>(value);
  const double ours = elementwise::sum_of_squares(c, x);
  CHECK(std::fabs(static_cast<long double>(ours) - expected) <= static_cast<long double>(count) * 0x1p-53L * expected);
  CHECK(elementwise::sum_of_squares({.shift = c.shift, .grid_limit = 2}, x) == ours);
}

const Optimizer decaying{.learning_rate = 3e-2f, .beta2 = .95f, .eps = 1e-6f, .decay = .1f, .gradient_scale = .25f};

TEST_CASE("elementwise: random counts") {
  reference::Random random(44);  // first: the host's device memory grows, and with it the time of every access
  const int cases = support::random_cases(1000);
  for (int i = 0; i < cases; ++i) {
    const std::size_t count = random.below(random.below(4) ? 100 : 5000);
    const Case c{.shift = random.below(3) ? 0 : random.below(8),
                 .grid_limit = random.below(3) ? 0 : 1 + static_cast<int>(random.below(5))};
    if (i % 3 == 0) check_add(random.below(2) ? Number::f32 : Number::bf16, count, c);
    if (i % 3 == 1) check_adamw(count, 1 + random.below(3), random.below(2) ? decaying : Optimizer{}, c);
    if (i % 3 == 2) check_sum(count, c, random.below(2) ? 1 : 1e15);
  }
}

TEST_CASE("elementwise: add") {
  for (const std::size_t count : counts)
    for (const Number number : {Number::f32, Number::bf16}) {
      check_add(number, count, {});
      check_add(number, count, {.shift = 1 + count % 5, .grid_limit = 2});
    }
  check_add(Number::f32, 5000, {.grid_limit = 2});
}

TEST_CASE("elementwise: offsets of more than 32 bits") {
  reference::Random random(1);
  const auto a = support::draw(Number::f32, random, {1200}).data, b = support::draw(Number::f32, random, {1200}).data;
  CHECK(elementwise::add_far(a, b) == elementwise::add(Number::f32, {}, a, b).y);
}

TEST_CASE("elementwise: adamw") {
  for (const std::size_t count : counts) {
    check_adamw(count, 1, {}, {});
    check_adamw(count, 3, decaying, {.shift = count % 4, .grid_limit = 1 + static_cast<int>(count % 3)});
  }
  check_adamw(40, 100, decaying, {});
}

TEST_CASE("elementwise: adamw of gradients that are zero moves weights by decay alone") {
  const Weights before{{1, -2, 0, 8}, {0, 0, 0, 0}, {0, 0, 0, 0}};
  const auto after = elementwise::adamw({}, {.learning_rate = .5f, .decay = .25f}, before, {{0, 0, 0, 0}});
  CHECK(after.weight == std::vector<double>{.875, -1.75, 0, 7});
  CHECK((after.m == before.m && after.v == before.v));
}

TEST_CASE("elementwise: sum of squares") {
  for (const std::size_t count : counts)
    for (const std::size_t shift : Sizes{0, 1}) check_sum(count, {.shift = shift}, 1);
  check_sum(300000, {}, 1e15);             // squares overflow float
  check_sum(100001, {.shift = 3}, 1e-25);  // and underflow
  check_sum(800000, {.shift = 1}, 1);      // more than three blocks' sums for each thread that adds them up
  std::vector<double> x(1000, 1);
  x[700] = NAN;
  CHECK(std::isnan(elementwise::sum_of_squares({}, x)));
  x[700] = INFINITY;
  CHECK(elementwise::sum_of_squares({}, x) == INFINITY);
}

TEST_CASE("elementwise: blocks of a sum") {
  using typeformer::cuda::detail::sum_blocks;
  static_assert(sum_blocks(0) == 1 && sum_blocks(1024) == 1 && sum_blocks(1025) == 2 && sum_blocks(1024 << 10) == 1024);
  static_assert(sum_blocks(std::int64_t{1} << 40) == 1024);
}

TEST_CASE("elementwise: nothing to do, and wrong arguments") {
  CHECK(elementwise::run_nothing() == 0);
  CHECK(elementwise::complaint("count") == "add: count: expected 0 or more, got -1");
  CHECK(elementwise::complaint("add") == "add: y, a, b: expected arrays, got null");
  CHECK(elementwise::complaint("step") == "adamw: step: expected 1 or more, got 0");
  CHECK(elementwise::complaint("adamw") == "adamw: weight, gradient, m, v: expected arrays, got null");
  CHECK(elementwise::complaint("adamw count") == "adamw: count: expected 0 or more, got -1");
  CHECK(elementwise::complaint("sum count") == "sum_of_squares: count: expected 0 or more, got -1");
  CHECK(elementwise::complaint("sum") == "sum_of_squares: x: expected an array, got null");
}

}  // namespace
