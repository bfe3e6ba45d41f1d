// Launches of more blocks than 65,535, which is all that the y and z of a grid have; elements at offsets of more than
// 32 bits; and what is refused because kernels count it with 32 bits.
#include "limits.hpp"

#include <algorithm>

#include "reference/gradient.hpp"
#include "reference/operation.hpp"
#include "support.hpp"

namespace {

using reference::Tensor;

constexpr std::size_t dim = 32;

struct Formula {
  template <class N>
  Tensor<N> operator()(const std::vector<Tensor<N>>& in) const {
    const reference::Norm norm{reference::NormKind::rms, reference::NormWeight::weight, false, double{1e-2f}};
    return reference::norm_rows(norm, in[0], &in[1], nullptr);
  }
};

template <class N>
limits::Norm judge(const Tensor<double>& x, const Tensor<double>& dy) {
  const std::vector<Tensor<N>> inputs{reference::convert<N>(x),
                                      reference::convert<N>(Tensor<double>({4}, {1, -2, .5, 3}))};
  const auto wide = [](const Tensor<N>& tensor) { return reference::convert<double>(tensor).data; };
  if (dy.size() == 0) return {wide(Formula{}(inputs)), {}};
  return {wide(Formula{}(inputs)), wide(reference::pullback(Formula{}, inputs, reference::convert<N>(dy))[0])};
}

void check_norm(const limits::Norm& ours, const Tensor<double>& x, const Tensor<double>& dy) {
  const limits::Norm expected = judge<double>(x, dy), naive = judge<float>(x, dy);
  support::compare(support::Number::f32, "y", expected.y, naive.y, ours.y, 9);
  support::compare(support::Number::f32, "dx", expected.dx, naive.dx, ours.dx, 9);
}
Tensor<double> random_rows(std::size_t rows) {
  reference::Random random(rows);
  return support::draw(support::Number::f32, random, {rows, 4});
}

/// A query that sees one key gets its value; the key's value gets the gradients of the heads, and nothing else has any.
void check_attention(const limits::Attention& problem) {
  const std::size_t segments = problem.queries.size(), heads = static_cast<std::size_t>(problem.heads);
  reference::Random random(segments);
  const auto integers = [&](std::size_t count) {  // so that all sums are exact
    std::vector<double> numbers(count);
    for (double& number : numbers) number = static_cast<double>(random.below(7)) - 3;
    return numbers;
  };
  const auto v = integers(segments * dim), d_o = integers(segments * heads * dim);
  const auto ours = limits::attend(problem, v, d_o);
  std::size_t wrong = 0;
  for (std::size_t segment = 0; segment < segments; ++segment) {
    const bool query = problem.queries[segment] > 0, key = problem.keys[segment] > 0;
    for (std::size_t i = 0; i < dim; ++i) {
      double sum = 0;
      for (std::size_t head = 0; head < heads; ++head) {
        const std::size_t at = (segment * heads + head) * dim + i;
        const double o = ours.o[at], expected = key ? v[segment * dim + i] : 0;
        wrong += query ? o != expected : !std::isnan(o);
        if (problem.backward) wrong += query ? ours.dq[at] != 0 : !std::isnan(ours.dq[at]);
        if (query) sum += d_o[at];
      }
      const double dk = ours.dk[segment * dim + i], dv = ours.dv[segment * dim + i];
      if (problem.backward) wrong += key ? dk != 0 || dv != sum : !std::isnan(dk) || !std::isnan(dv);
    }
    for (std::size_t head = 0; head < heads; ++head) {
      const double lse = ours.lse[segment * heads + head];
      wrong += query ? std::isfinite(lse) != key : !std::isnan(lse);
    }
  }
  CHECK(wrong == 0);
}

/// Ones for the first and last segments and for those around the block 65,536, zeros for the others.
std::vector<int> few_of(int segments, int blocks_of_each) {
  std::vector<int> few(static_cast<std::size_t>(segments));
  for (const int at : {0, 1, 65534, 65535, 65536, 65537, 65538})
    if (at / blocks_of_each < segments) few[static_cast<std::size_t>(at / blocks_of_each)] = 1;
  few.back() = 1;
  return few;
}
std::vector<int> all_of(int segments) { return std::vector<int>(static_cast<std::size_t>(segments), 1); }

TEST_CASE("limits: more blocks than 65,535") {
  SUBCASE("norms, four rows for each block") {
    const Tensor<double> x = random_rows(4 * 66000);
    check_norm(limits::norm(x.data, 4 * 66000), x, {});
  }
  SUBCASE("heads, eight for each block") {
    const int count = 8 * 66000;
    std::vector<double> qkv(count + 2);
    for (std::size_t i = 0; i < qkv.size(); ++i) qkv[i] = static_cast<double>(i);
    const limits::Heads ours = limits::heads(qkv, count);
    CHECK(std::equal(ours.q.begin(), ours.q.end(), qkv.begin()));
    CHECK((ours.k[0] == qkv[qkv.size() - 2] && ours.v[0] == qkv.back()));
    CHECK(ours.dqkv == qkv);
  }
  SUBCASE("attention: queries times heads, forward and backward") {
    check_attention({.heads = 2, .queries = all_of(33500), .keys = few_of(33500, 2), .backward = true});
  }
  SUBCASE("attention: keys of the backward") {
    check_attention({.heads = 2, .queries = few_of(66000, 1), .keys = all_of(66000), .backward = true});
  }
  SUBCASE("attention by splits: rows that are combined") {
    check_attention({.heads = 17, .queries = all_of(4096), .keys = few_of(4096, 17)});
  }
}

TEST_CASE("limits: offsets of more than 32 bits") {
  const Tensor<double> x = random_rows(3), dy = random_rows(3);
  check_norm(limits::norm_far(x.data, dy.data, 3, (std::int64_t{1} << 33) + 5), x, dy);
  const std::int64_t far = (std::int64_t{1} << 31) + 3;
  check_attention({.heads = 2, .queries = {1, 0, 1}, .keys = {1, 1, 0}, .first_row = far});
  check_attention({.heads = 2, .queries = all_of(9000), .keys = few_of(9000, 9), .first_row = far});  // by tiles
}

TEST_CASE("limits: what kernels would count beyond 32 bits is refused") {
  CHECK(limits::complaint("norm") == "norm_rows: width: expected at most 536870912, got 536870913");
  CHECK(limits::complaint("embedding") == "gather_rows: width: expected at most 536870912, got 536870913");
  CHECK(limits::complaint("linear") == "linear: in, out: expected at most 536870912, got 536870913");
  CHECK(limits::complaint("heads") ==
        "prepare_heads: heads, kv_heads, head_dim: expected at most 536870912, got 536871040");
  CHECK(limits::complaint("attention") == "attend: heads, head_dim: expected at most 536870912, got 536870944");
  CHECK(limits::complaint("keys") == "attend: segment 0, keys: expected 0 to 1073741824, got 1073741825");
  CHECK(limits::complaint("position") == "attend: segment 0, first_position: expected 0 to 1073741823, got 1073741824");
}

}  // namespace
