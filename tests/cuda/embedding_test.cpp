// gather_rows and gather_rows_backward against plain loops: indices that repeat from never to always, tokens around the
// tiles that are looked at together, widths around the accesses and blocks, unaligned arrays, grids in pieces.
#include "embedding.hpp"

#include <cmath>

#include "support.hpp"
#include "typeformer/kernel/cuda/tuning.hpp"

namespace {

using embedding::Case;
using embedding::Inputs;
using embedding::Results;
using support::Number;
using Sizes = std::vector<std::size_t>;

template <class N>
Results judge(const Case& c, const Inputs& in) {
  Results results{in.y_before.data, in.dtable_before.data};
  const auto scale = static_cast<N>(c.scale);
  std::vector<N> sums(in.dtable_before.data.begin(), in.dtable_before.data.end());
  for (std::size_t t = 0; t < c.tokens; ++t) {
    const auto row = static_cast<std::size_t>(in.index[t] + c.offset);
    for (std::size_t i = 0; i < c.width; ++i) {
      const N value = scale * static_cast<N>(in.table(row, i));
      const N before = c.accumulate ? static_cast<N>(in.y_before(t, i)) : N(0);
      results.y[t * c.width + i] = static_cast<double>(before + value);
      sums[row * c.width + i] += scale * static_cast<N>(in.dy(t, i));
    }
  }
  results.dtable.assign(sums.begin(), sums.end());
  return results;
}

/// Small indices are frequent, as words are.
Inputs draw(Number activations, Number weights, const Case& c) {
  reference::Random random(c.tokens * 1000 + c.width * 10 + c.rows);
  Inputs in;
  in.table = support::draw(weights, random, {c.rows, c.width});
  in.y_before = support::draw(activations, random, {c.tokens, c.width});
  in.dy = support::draw(activations, random, {c.tokens, c.width});
  in.dtable_before = support::draw(Number::f32, random, {c.rows, c.width});
  for (std::size_t t = 0; t < c.tokens; ++t) {
    const double u = random.uniform();
    in.index.push_back(static_cast<std::int32_t>(u * u * static_cast<double>(c.rows)) - c.offset);
  }
  return in;
}

void check(Number activations, Number weights, const Case& c, bool again = true) {
  CAPTURE(c.tokens);
  CAPTURE(c.width);
  CAPTURE(c.rows);
  CAPTURE(c.shift);
  CAPTURE(c.grid_limit);
  const Inputs in = draw(activations, weights, c);
  const Results expected = judge<double>(c, in), naive = judge<float>(c, in);
  const Results ours = embedding::run(activations, weights, c, in);
  support::compare(activations, "y", expected.y, naive.y, ours.y, 2);
  int exponent = 0;
  if (std::frexp(double{c.scale}, &exponent) == 0.5)  // products are exact, contracted or not
    CHECK(ours.dtable == naive.dtable);               // the order of the sum is the contract's
  else
    support::compare(Number::f32, "dtable", expected.dtable, naive.dtable, ours.dtable, c.tokens + 1);
  if (!again) return;
  const Results second = embedding::run(activations, weights, c, in);
  CHECK((second.y == ours.y && second.dtable == ours.dtable));
}

void check_types(const Case& c) {
  check(Number::f32, Number::f32, c);
  check(Number::bf16, Number::bf16, c);
  check(Number::bf16, Number::f32, c);
}

TEST_CASE("embedding: random shapes") {
  reference::Random random(42);  // first: the host's device memory grows, and with it the time of every access
  const int cases = support::random_cases(1000);
  for (int i = 0; i < cases; ++i) {
    Case c{.tokens = random.below(40), .width = 1 + random.below(64), .rows = 1 + random.below(20)};
    if (random.below(2)) c.width = (c.width + 7) / 8 * 8;
    c.offset = static_cast<int>(random.below(5)) - 2;
    c.scale = random.below(2) ? 1.f : 11.5f;
    c.accumulate = random.below(2);
    c.shift = random.below(4) ? 0 : random.below(8);
    c.grid_limit = random.below(4) ? 0 : 1 + static_cast<int>(random.below(9));
    const Number activations = random.below(2) ? Number::f32 : Number::bf16;
    check(activations, activations == Number::f32 || random.below(2) ? Number::f32 : Number::bf16, c, false);
  }
}

TEST_CASE("embedding: widths around accesses and blocks") {
  for (const std::size_t width : Sizes{1, 3, 4, 7, 8, 9, 31, 32, 40})
    check_types({.tokens = 6, .width = width, .rows = 4, .scale = .75f});
  for (const std::size_t width : Sizes{511, 512, 516, 1023, 1024, 1032})
    check_types({.tokens = 5, .width = width, .rows = 3});
  for (const std::size_t width : Sizes{255, 256, 257, 2047, 2048, 2056, 4104})
    check_types({.tokens = 3, .width = width, .rows = 2, .scale = 2.f, .accumulate = true});
  check_types({.tokens = 3, .width = 2049, .rows = 2});
}

TEST_CASE("embedding: tokens around the tiles of 512 and 1024, lists that fill up") {
  for (const std::size_t tokens : Sizes{511, 512, 513, 1025})
    check(Number::f32, Number::f32, {.tokens = tokens, .width = 4, .rows = 30}, false);
  check(Number::bf16, Number::bf16, {.tokens = 2050, .width = 8, .rows = 1, .scale = .5f}, false);
  check(Number::f32, Number::f32, {.tokens = 1100, .width = 516, .rows = 1}, false);
  check(Number::bf16, Number::f32, {.tokens = 1030, .width = 8, .rows = 500}, false);
  for (const Number number : {Number::f32, Number::bf16})
    check(number, number, {.tokens = 1100, .width = 5, .rows = 2});
}

TEST_CASE("embedding: unaligned arrays, offsets, grids in pieces") {
  for (const std::size_t shift : Sizes{1, 2, 3}) check_types({.tokens = 9, .width = 24, .rows = 5, .shift = shift});
  check_types({.tokens = 20, .width = 16, .rows = 7, .offset = 2, .accumulate = true});
  check_types({.tokens = 20, .width = 16, .rows = 7, .offset = -3, .scale = 3.f, .grid_limit = 3});
  check_types({.tokens = 4, .width = 1100, .rows = 2, .grid_limit = 1});
}

TEST_CASE("embedding: offsets of more than 32 bits") {
  const Case c{.width = 64, .rows = 3};
  const Inputs in = draw(Number::f32, Number::f32, c);
  const Results near = embedding::run(Number::f32, Number::f32, c, in), far = embedding::run_far(c, in);
  CHECK((far.y == near.y && far.dtable == near.dtable));
}

TEST_CASE("embedding: an infinite or NaN gradient stays in its row") {
  const Case c{.tokens = 3, .width = 8, .rows = 3};
  Inputs in = draw(Number::f32, Number::f32, c);
  in.index = {2, 0, 2};
  in.dy(0, 3) = INFINITY;
  in.dy(1, 5) = NAN;
  const Results ours = embedding::run(Number::f32, Number::f32, c, in);
  for (std::size_t i = 0; i < ours.dtable.size(); ++i)
    CHECK((i == 5 ? std::isnan(ours.dtable[i]) : i == 19 ? std::isinf(ours.dtable[i]) : std::isfinite(ours.dtable[i])));
}

TEST_CASE("embedding: the shapes of blocks") {
  using typeformer::cuda::detail::gather_backward_shape;
  for (int width = 1; width <= 20000; width += width < 3000 ? 1 : 137)
    for (const int elements : {1, 4, 8})
      for (const int tokens : {1, 5, 1024, 1 << 20}) {
        const auto shape = gather_backward_shape(tokens, width, elements);
        CHECK((shape.threads % 32 == 0 && shape.threads <= typeformer::cuda::detail::gather_most_threads));
        CHECK((shape.column_blocks * shape.columns >= width && (shape.column_blocks - 1) * shape.columns < width));
        CHECK((shape.parts & (shape.parts - 1)) == 0);
        CHECK((shape.parts < 2 * tokens && shape.parts <= 1024));
      }
}

TEST_CASE("embedding: a block's list that is full but for all of a tile and one token less") {
  // blocks of 128 threads look at 512 tokens at a time and list 2048
  const Case c{.tokens = 2560, .width = 8, .rows = 2};
  Inputs in = draw(Number::f32, Number::f32, c);
  for (std::size_t t = 0; t < c.tokens; ++t) in.index[t] = t < 511 ? 1 : 0;
  CHECK(embedding::run(Number::f32, Number::f32, c, in).dtable == judge<float>(c, in).dtable);
}
TEST_CASE("embedding: nothing to do, and wrong arguments") {
  embedding::run_nothing();
  CHECK(embedding::complaint("tokens") == "gather_rows: tokens: expected 0 or more, got -1");
  CHECK(embedding::complaint("backward tokens") == "gather_rows_backward: tokens: expected 0 or more, got -1");
  CHECK(embedding::complaint("large width") == "gather_rows: width: expected at most 536870912, got 536870913");
  CHECK(embedding::complaint("width") == "gather_rows: width: expected 1 or more, got 0");
  CHECK(embedding::complaint("null") == "gather_rows: y, table, index: expected arrays, got null");
  CHECK(embedding::complaint("many") == "gather_rows_backward: tokens: expected fewer than 2^31, got 2147483648");
  CHECK(embedding::complaint("backward") == "gather_rows_backward: dy, index: expected arrays, got null");
}

}  // namespace
