// prepare_heads and its backward against the judge: split, q/k norms of every kind and width and a user's own, before
// and after RoPE, both kinds of pairs and partly turning heads, rows of the cache, unaligned arrays, grids in pieces;
// and the angles against long double.
#include "heads.hpp"

#include <algorithm>

#include "reference/gradient.hpp"
#include "reference/operation.hpp"
#include "support.hpp"
#include "typeformer/kernel/cuda/tuning.hpp"

namespace {

using heads::Case;
using heads::Inputs;
using heads::Results;
using heads::Width;
using reference::NormKind;
using reference::NormWeight;
using reference::Tensor;
using support::Number;

constexpr double eps = double{1e-2f};

// --- the judge ------------------------------------------------------------------------------------------------------

reference::Norm norm_of(const std::string& kind) {
  if (kind == "none" || kind == "tanh") return {NormKind::identity, NormWeight::none, false, 0};
  if (kind == "layer") return {NormKind::layer, NormWeight::weight, true, eps};
  if (kind == "layer_plain") return {NormKind::layer, NormWeight::none, false, eps};
  return {NormKind::rms,
          kind == "rms"            ? NormWeight::weight
          : kind == "rms_one_plus" ? NormWeight::one_plus
                                   : NormWeight::none,
          false, eps};
}
bool has_gain(const std::string& kind) { return norm_of(kind).weight != NormWeight::none || kind == "tanh"; }
bool has_bias(const std::string& kind) { return norm_of(kind).bias || kind == "tanh"; }

/// The prepared rows q | k | v; inputs: qkv, q_gain, k_gain, q_bias, k_bias.
struct Formula {
  const std::string& kind;
  const Case& c;
  const Inputs& in;

  template <class N>
  Tensor<N> operator()(const std::vector<Tensor<N>>& inputs) const {
    Tensor<N> y = inputs[0];
    for (std::size_t token = 0; token < c.tokens; ++token) {
      prepare(y.row(token), token, c.heads, inputs[1], inputs[3]);
      prepare(y.row(token) + c.q_width(), token, c.kv_heads, inputs[2], inputs[4]);
    }
    return y;
  }

 private:
  template <class N>
  void prepare(N* x, std::size_t token, std::size_t count, const Tensor<N>& gain, const Tensor<N>& bias) const {
    if (!c.after) normalize(x, count, gain, bias);
    for (std::size_t head = 0; head < count; ++head) turn(x + head * c.head_dim, token);
    if (c.after) normalize(x, count, gain, bias);
  }
  template <class N>
  void normalize(N* x, std::size_t count, const Tensor<N>& gain, const Tensor<N>& bias) const {
    using std::tanh;
    if (kind == "none") return;
    const std::size_t row = c.width == Width::all_heads ? count * c.head_dim : c.head_dim;
    for (std::size_t first = 0; first < count * c.head_dim; first += row) {
      const std::size_t at = c.width == Width::head ? 0 : first;
      std::vector<N> y(row);
      if (kind == "tanh") {
        for (std::size_t i = 0; i < row; ++i)
          y[i] = tanh(reference::constant<N>(.5) * x[first + i]) * gain.data[at + i] + bias.data[at + i];
      } else {
        const reference::Norm norm = norm_of(kind);
        reference::norm_row(norm, x + first, row, has_gain(kind) ? gain.data.data() + at : nullptr,
                            norm.bias ? bias.data.data() + at : nullptr, y.data());
      }
      std::copy(y.begin(), y.end(), x + first);
    }
  }
  /// The angle is the float product of position and frequency, whatever the precision.
  template <class N>
  void turn(N* x, std::size_t token) const {
    using F = reference::Base<N>;
    for (std::size_t i = 0; i < c.rotary_width / 2; ++i) {
      const auto angle = static_cast<F>(static_cast<float>(in.position[token]) * in.frequencies[i]);
      const auto amplitude = static_cast<F>(static_cast<float>(c.amplitude));
      const N cosine = N(std::cos(angle) * amplitude), sine = N(std::sin(angle) * amplitude);
      N& a = x[c.adjacent ? 2 * i : i];
      N& b = x[c.adjacent ? 2 * i + 1 : i + c.rotary_width / 2];
      const N first = a, second = b;
      a = first * cosine - second * sine;
      b = second * cosine + first * sine;
    }
  }
};

/// As run() gives them, but k and v token by token and dqkv dense.
template <class N>
Results judge(const std::string& kind, const Case& c, const Inputs& in) {
  const auto as = [](const Tensor<double>& tensor) { return reference::convert<N>(tensor); };
  const Formula formula{kind, c, in};
  const std::vector<Tensor<N>> inputs{as(in.qkv), as(in.q_gain), as(in.k_gain), as(in.q_bias), as(in.k_bias)};
  const auto y = reference::convert<double>(formula(inputs));
  Results results;
  for (std::size_t token = 0; token < c.tokens; ++token) {
    const double* row = y.row(token);
    results.q.insert(results.q.end(), row, row + c.q_width());
    results.k.insert(results.k.end(), row + c.q_width(), row + c.q_width() + c.kv_width());
    results.v.insert(results.v.end(), row + c.q_width() + c.kv_width(), row + c.qkv_width());
  }
  const auto gradients = reference::pullback(formula, inputs, as(in.d));
  results.dqkv = reference::convert<double>(gradients[0]).data;
  const auto sum = [&](const Tensor<N>& gradient, const Tensor<double>& before, bool any) {
    Tensor<N> total = as(before);
    if (any && c.gradients_wanted) reference::accumulate(total, gradient);
    return reference::convert<double>(total).data;
  };
  results.dq_gain = sum(gradients[1], in.q_before, has_gain(kind));
  results.dk_gain = sum(gradients[2], in.k_before, has_gain(kind));
  results.dq_bias = sum(gradients[3], in.q_before, has_bias(kind));
  results.dk_bias = sum(gradients[4], in.k_before, has_bias(kind));
  return results;
}

// --- inputs and comparison ------------------------------------------------------------------------------------------

Inputs draw(Number number, const Case& c, std::uint64_t seed) {
  reference::Random random(seed);
  Inputs in;
  in.qkv = support::draw(number, random, {c.tokens, c.qkv_width()}, 1, .3);
  in.d = support::draw(number, random, {c.tokens, c.qkv_width()});
  in.q_gain = support::draw(Number::f32, random, {c.q_gain()}, .3, 1);
  in.k_gain = support::draw(Number::f32, random, {c.k_gain()}, .3, 1);
  in.q_bias = support::draw(Number::f32, random, {c.q_gain()}, .3);
  in.k_bias = support::draw(Number::f32, random, {c.k_gain()}, .3);
  in.q_before = support::draw(Number::f32, random, {c.q_gain()});
  in.k_before = support::draw(Number::f32, random, {c.k_gain()});
  for (std::size_t i = 0; i < c.rotary_width / 2; ++i)
    in.frequencies.push_back(static_cast<float>(
        c.far_angles ? std::exp2(26.5 * static_cast<double>((i + seed) % 5))
                     : std::pow(500, -2 * static_cast<double>(i) / static_cast<double>(c.rotary_width))));
  const std::int64_t rows = static_cast<std::int64_t>(c.cache_rows());
  for (std::int64_t token = 0; token < static_cast<std::int64_t>(c.tokens); ++token) {
    const auto largest = token % 3 == 0 ? std::size_t{1000000} : 50;
    in.position.push_back(static_cast<std::int32_t>(random.below(largest)));
    in.kv_row.push_back(rows - 2 - 2 * token);  // rows of others before, between and behind
  }
  return in;
}

double largest(const std::vector<double>& numbers) {
  double result = 0;
  for (const double number : numbers) result = std::fmax(result, std::fabs(number));
  return result;
}

/// The size of dqkv's terms, which cancel where a norm's row has few elements: 2 |d| * gain over the row's deviation.
double largest_term(const std::string& kind, const Case& c, const Inputs& in) {
  if (norm_of(kind).kind == NormKind::identity) return 0;
  double least = 1e30;
  const Tensor<double>& x = in.qkv;
  for (std::size_t token = 0; token < c.tokens; ++token) {
    const auto rows = [&](std::size_t first, std::size_t count, std::size_t width) {
      for (std::size_t at = first; at < first + count; at += width) {
        double mean = 0, squares = 0;
        const auto n = static_cast<double>(width);
        for (std::size_t i = at; i < at + width; ++i)
          mean += norm_of(kind).kind == NormKind::layer ? x(token, i) / n : 0;
        for (std::size_t i = at; i < at + width; ++i) squares += (x(token, i) - mean) * (x(token, i) - mean) / n;
        least = std::fmin(least, squares);
      }
    };
    const bool all = c.width == Width::all_heads;
    rows(0, c.q_width(), all ? c.q_width() : c.head_dim);
    rows(c.q_width(), c.kv_width(), all ? c.kv_width() : c.head_dim);
  }
  const double gain = 1 + std::fmax(largest(in.q_gain.data), largest(in.k_gain.data));
  return 2 * largest(in.d.data) * gain * c.amplitude * c.amplitude / std::sqrt(least + eps);
}

/// The rows of the cache that tokens have, in their order; false where another row was written.
bool take_rows(const Case& c, const Inputs& in, std::vector<double>& cache) {
  if (!c.to_rows) return true;
  std::vector<double> taken;
  for (std::size_t token = 0; token < c.tokens; ++token) {
    const auto from =
        cache.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(in.kv_row[token]) * c.kv_width());
    taken.insert(taken.end(), from, from + static_cast<std::ptrdiff_t>(c.kv_width()));
    std::fill_n(from, c.kv_width(), NAN);
  }
  const bool others = std::all_of(cache.begin(), cache.end(), [](double x) { return std::isnan(x); });
  cache = std::move(taken);
  return others;
}
/// The rows without the gaps; false where a gap was written.
bool take_dense(const Case& c, std::vector<double>& rows) {
  std::vector<double> dense;
  bool gaps = true;
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (i % c.stride() < c.qkv_width())
      dense.push_back(rows[i]);
    else
      gaps = gaps && std::isnan(rows[i]);
  rows = std::move(dense);
  return gaps;
}

void check(const std::string& kind, Number number, const Case& c, std::uint64_t seed = 0) {
  CAPTURE(kind);
  CAPTURE(c.tokens);
  CAPTURE(c.heads);
  CAPTURE(c.kv_heads);
  CAPTURE(c.head_dim);
  CAPTURE(c.rotary_width);
  CAPTURE(c.adjacent);
  CAPTURE(static_cast<int>(c.width));
  CAPTURE(c.after);
  CAPTURE(c.shift);
  CAPTURE(c.gap);
  CAPTURE(number == Number::bf16);
  const Inputs in = draw(number, c, seed + c.tokens * 1000 + c.head_dim);
  const Results expected = judge<double>(kind, c, in), naive = judge<float>(kind, c, in);
  Results ours = heads::run(kind, number, c, in);
  if (seed % 8 == 0) CHECK(heads::run(kind, number, c, in).dq_gain == ours.dq_gain);
  CHECK(take_rows(c, in, ours.k));
  CHECK(take_rows(c, in, ours.v));
  CHECK(take_dense(c, ours.dqkv));
  CHECK(ours.v == expected.v);

  const std::size_t terms = (c.width == Width::all_heads ? std::max(c.q_width(), c.kv_width()) : c.head_dim) + 8;
  support::compare(number, "q", expected.q, naive.q, ours.q, terms);
  support::compare(number, "k", expected.k, naive.k, ours.k, terms);
  support::compare(number, "dqkv", expected.dqkv, naive.dqkv, ours.dqkv, terms, largest_term(kind, c, in));
  const std::size_t rows = c.tokens * (c.width == Width::head ? std::max(c.heads, c.kv_heads) : 1) + 5;
  const double term = largest(in.d.data) * std::fmax(1, largest(in.qkv.data)) * c.amplitude;
  support::compare(Number::f32, "dq_gain", expected.dq_gain, naive.dq_gain, ours.dq_gain, rows, term);
  support::compare(Number::f32, "dk_gain", expected.dk_gain, naive.dk_gain, ours.dk_gain, rows, term);
  support::compare(Number::f32, "dq_bias", expected.dq_bias, naive.dq_bias, ours.dq_bias, rows, term);
  support::compare(Number::f32, "dk_bias", expected.dk_bias, naive.dk_bias, ours.dk_bias, rows, term);
}

void check_both(const std::string& kind, const Case& c) {
  for (const Number number : {Number::f32, Number::bf16}) check(kind, number, c);
}

// --- cases ----------------------------------------------------------------------------------------------------------

TEST_CASE("heads: nothing to do, and wrong arguments") {
  heads::run_nothing();
  CHECK(heads::complaint("nothing") == "none");
  CHECK(heads::complaint("tokens") == "prepare_heads: tokens: expected 0 or more, got -1");
  CHECK(heads::complaint("backward tokens") == "prepare_heads_backward: tokens: expected 0 or more, got -1");
  CHECK(heads::complaint("heads") == "prepare_heads: heads, kv_heads: expected 1 or more, got 1 and 0");
  CHECK(heads::complaint("no heads") == "prepare_heads: heads, kv_heads: expected 1 or more, got 0 and 1");
  CHECK(heads::complaint("no head_dim") == "prepare_heads: head_dim: expected 1 to 256, got 0");
  CHECK(heads::complaint("head_dim") == "prepare_heads: head_dim: expected 1 to 256, got 257");
  CHECK(heads::complaint("odd width") ==
        "prepare_heads: rotation.width: expected an even number up to head_dim, got 3");
  CHECK(heads::complaint("large width") ==
        "prepare_heads: rotation.width: expected an even number up to head_dim, got 6");
  CHECK(heads::complaint("negative width") ==
        "prepare_heads: rotation.width: expected an even number up to head_dim, got -2");
  CHECK(heads::complaint("qkv") == "prepare_heads: qkv: expected an array, got null");
  CHECK(heads::complaint("bias") == "prepare_heads: q_bias, k_bias: expected arrays, the norm has a bias, got null");
  CHECK(heads::complaint("width") ==
        "prepare_heads: heads, kv_heads, head_dim: expected at most 536870912, got 4294967304");
  CHECK(heads::complaint("stride") == "prepare_heads: qkv_stride: expected 0 or at least 12, got 11");
  CHECK(heads::complaint("frequencies") ==
        "prepare_heads: frequencies, position: expected arrays, heads turn, got null");
  CHECK(heads::complaint("gain") == "prepare_heads: q_gain, k_gain: expected arrays, the norm has a gain, got null");
  CHECK(heads::complaint("q") == "prepare_heads: q, k, v: expected arrays, got null");
  CHECK(heads::complaint("dqkv") == "prepare_heads_backward: dqkv, dq, dk, dv: expected arrays, got null");
}

TEST_CASE("tuning: heads have lanes for all their channels, and blocks whole warps") {
  using namespace typeformer::cuda::detail;
  for (int head_dim = 1; head_dim <= largest_head_dim; ++head_dim)
    for (const int elements : {1, 4, 8}) {
      if (head_dim % elements != 0) continue;
      for (const std::int64_t tokens : {std::int64_t{1}, std::int64_t{100}, std::int64_t{1} << 33})
        for (const int heads : {1, 8, 96}) {
          const HeadsSizes sizes{tokens, heads, heads, head_dim, elements};
          const int slots = elements == 1 ? scalar_head_slots : 1;
          CHECK(heads_lanes(sizes) * slots * 2 * elements >= head_dim);
          CHECK((heads_threads % heads_lanes(sizes) == 0 && all_heads_threads(sizes) % heads_lanes(sizes) == 0));
          CHECK((all_heads_threads(sizes) >= 32 && all_heads_threads(sizes) <= all_heads_most_threads));
          for (const HeadsShape& shape : {heads_shape(sizes), heads_backward_shape(sizes, true, heads > 1)}) {
            CHECK((shape.heads >= 1 && shape.tokens >= shape.groups()));
            CHECK((heads == 1 || heads_backward_shape(sizes, true, true).heads == 1));
          }
          const auto sums = heads_backward_shape(sizes, true, false);
          CHECK((tokens + sums.tokens - 1) / sums.tokens <= 256);
        }
    }
}

TEST_CASE("heads: RoPE, whole heads and parts of them") {
  for (const bool adjacent : {false, true})
    for (const auto& [head_dim, width] : {std::pair<std::size_t, std::size_t>{2, 2},
                                          {16, 16},
                                          {24, 8},
                                          {40, 20},
                                          {64, 64},
                                          {80, 32},
                                          {128, 128},
                                          {256, 256},
                                          {256, 64},
                                          {250, 250},
                                          {96, 24}})
      for (const std::size_t tokens : {1u, 9u})
        check_both("none", {.tokens = tokens,
                            .heads = 3,
                            .kv_heads = 2,
                            .head_dim = head_dim,
                            .rotary_width = width,
                            .adjacent = adjacent,
                            .amplitude = 1.1,
                            .to_rows = true});
}

TEST_CASE("heads: without position, head_dims from 1 on") {
  for (const std::size_t head_dim : {1u, 3u, 5u, 17u, 129u, 255u})
    for (const char* kind : {"none", "layer"}) check_both(kind, {.tokens = 3, .heads = 2, .head_dim = head_dim});
}

TEST_CASE("heads: norms of every kind and width, before and after RoPE") {
  for (const char* kind : {"rms", "rms_one_plus", "rms_plain", "layer", "layer_plain", "tanh"})
    for (const Width width : {Width::head, Width::head_own_weights, Width::all_heads})
      for (const bool after : {false, true})
        for (const std::size_t head_dim : {6u, 32u})
          check_both(kind, {.tokens = 7,
                            .heads = 4,
                            .kv_heads = 2,
                            .head_dim = head_dim,
                            .rotary_width = head_dim / 4 * 2,
                            .amplitude = .9,
                            .width = width,
                            .after = after,
                            .to_rows = true});
}

TEST_CASE("heads: many tokens, many heads, unaligned arrays, grids in pieces") {
  check_both("layer", {.tokens = 300, .heads = 3, .kv_heads = 1, .head_dim = 8, .rotary_width = 8});
  check_both(
      "rms",
      {.tokens = 70, .heads = 9, .kv_heads = 3, .head_dim = 64, .rotary_width = 64, .width = Width::head_own_weights});
  check_both(
      "layer",
      {.tokens = 5, .heads = 20, .kv_heads = 17, .head_dim = 128, .rotary_width = 128, .width = Width::all_heads});
  check_both("rms",
             {.tokens = 3, .heads = 40, .kv_heads = 8, .head_dim = 80, .width = Width::all_heads, .after = true});
  check_both("layer",
             {.tokens = 9, .heads = 3, .kv_heads = 3, .head_dim = 64, .rotary_width = 32, .shift = 1, .gap = 3});
  check_both("rms",
             {.tokens = 9, .heads = 3, .kv_heads = 3, .head_dim = 64, .rotary_width = 32, .gap = 8, .to_rows = true});
  for (const Width width : {Width::head, Width::all_heads})
    check_both("layer", {.tokens = 33,
                         .heads = 5,
                         .kv_heads = 2,
                         .head_dim = 16,
                         .rotary_width = 16,
                         .width = width,
                         .to_rows = true,
                         .grid_limit = 3});
}

TEST_CASE("heads: so many tokens that heads of a block share angles, pieces of which are left over") {
  const Case c{.tokens = 54 * 128 + 1, .heads = 13, .kv_heads = 3, .head_dim = 6, .rotary_width = 4, .to_rows = true};
  const typeformer::cuda::detail::HeadsSizes sizes{static_cast<std::int64_t>(c.tokens), 13, 3, 6, 1};
  CHECK(heads_shape(sizes).heads == 2);
  CHECK(heads_backward_shape(sizes, true, false).tokens == 128);
  check("layer", Number::f32, c, 1);
}
TEST_CASE("heads: gradients that are not wanted") {
  for (const Width width : {Width::head, Width::all_heads})
    check_both("layer", {.tokens = 5,
                         .heads = 2,
                         .kv_heads = 2,
                         .head_dim = 32,
                         .rotary_width = 32,
                         .width = width,
                         .gradients_wanted = false});
}

TEST_CASE("heads: two runs are equal") {
  for (const Width width : {Width::head, Width::head_own_weights, Width::all_heads})
    for (const Number number : {Number::f32, Number::bf16}) {
      const Case c{.tokens = 150, .heads = 4, .kv_heads = 2, .head_dim = 16, .rotary_width = 16, .width = width};
      const Inputs in = draw(number, c, 5);
      CHECK(heads::run("layer", number, c, in) == heads::run("layer", number, c, in));
    }
}

TEST_CASE("heads: NaN of one head stays in that head") {
  Case c{.tokens = 2, .heads = 3, .kv_heads = 1, .head_dim = 16, .rotary_width = 16};
  Inputs in = draw(Number::f32, c, 1);
  in.qkv(0, 20) = NAN;
  const Results ours = heads::run("rms", Number::f32, c, in);
  for (std::size_t i = 0; i < ours.q.size(); ++i) CHECK(std::isnan(ours.q[i]) == (i / 16 == 1));
}

/// Of turns by float angles of positions up to a million, in units in the last place of [0.5, 1): 0.5 is a correctly
/// rounded result, 0.69 what rotation.cuh promises, and an error of the product of cos and 1 comes on top: none.
TEST_CASE("heads: angles are exact") {
  double worst = 0;
  const int count = support::random_cases(40000);
  reference::Random random(3);
  for (const float frequency : {1.f, .75f, 0.031622775f, 1e-4f, 3.4e-7f, 2.5f}) {
    std::vector<std::int32_t> position;
    for (int i = 0; i < 200; ++i) position.push_back(i);
    for (int i = 0; i < count; ++i) position.push_back(static_cast<std::int32_t>(random.below(1000001)));
    position.push_back(2147483647);
    position.push_back(-5);
    const auto turned = heads::turned_units(position, frequency);
    for (std::size_t t = 0; t < position.size(); ++t) {
      const long double angle = static_cast<long double>(static_cast<float>(position[t]) * frequency);
      worst = std::fmax(worst, std::fabs(static_cast<double>(std::cos(angle)) - turned[2 * t]));
      worst = std::fmax(worst, std::fabs(static_cast<double>(std::sin(angle)) - turned[2 * t + 1]));
    }
  }
  MESSAGE("largest error of sine and cosine: " << worst * 0x1p24 << " units in the last place");
  CHECK(worst <= .69 * 0x1p-24);
}

TEST_CASE("heads: a thousand shapes") {
  const char* kinds[] = {"none", "rms", "layer", "tanh", "rms_one_plus", "rms_plain", "layer_plain"};
  const int cases = support::random_cases(1000);
  for (int i = 0; i < cases; ++i) {
    reference::Random random(static_cast<std::uint64_t>(i) * 7919 + 1);
    Case c;
    c.tokens = random.below(20) == 0 ? random.below(90) : random.below(7);
    c.heads = 1 + random.below(5);
    c.kv_heads = 1 + random.below(3);
    const std::size_t dims[] = {1 + random.below(20), 8 * (1 + random.below(6)), 16, 64};
    c.head_dim = dims[random.below(4)];
    const std::size_t widths[] = {0, c.head_dim / 2 * 2, random.below(c.head_dim + 1) / 2 * 2, c.head_dim / 16 * 16};
    c.rotary_width = widths[random.below(4)];
    c.adjacent = random.below(3) == 0;
    c.amplitude = random.below(2) ? 1 : 1.25;
    c.width = static_cast<Width>(random.below(3));
    c.after = random.below(2) == 0;
    c.shift = random.below(3) == 0 ? random.below(5) : 0;
    c.gap = random.below(3) == 0 ? random.below(9) : 0;
    c.to_rows = random.below(2) == 0;
    c.gradients_wanted = random.below(5) != 0;
    c.grid_limit = random.below(4) == 0 ? 1 + static_cast<int>(random.below(5)) : 0;
    c.far_angles = random.below(4) == 0;
    check(kinds[random.below(c.adjacent ? 4 : 7)], random.below(2) ? Number::f32 : Number::bf16, c,
          static_cast<std::uint64_t>(i));
  }
}

TEST_CASE("heads: many heads, angles of every size") {
  for (const char* kind : {"none", "rms", "layer", "tanh", "rms_one_plus", "rms_plain", "layer_plain"})
    for (const bool adjacent : {false, true})
      for (const Width width : {Width::head, Width::all_heads})
        for (const std::size_t head_dim : {128u, 250u})
          for (const bool after : {false, true}) {
            if (adjacent && std::string(kind).find("_") != std::string::npos) continue;
            check_both(kind, {.tokens = 4,
                              .heads = 9,
                              .kv_heads = 3,
                              .head_dim = head_dim,
                              .rotary_width = head_dim,
                              .adjacent = adjacent,
                              .width = width,
                              .after = after,
                              .far_angles = true});
          }
}

}  // namespace
