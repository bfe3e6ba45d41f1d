// test: sanitize
// prepare_heads and its backward alone, against the judge: split, q/k norm of every width, RoPE, cache rows.
#include <string>

#include "kernel/support.hpp"

namespace {

using namespace kernel_test;

/// One case: `tokens` rows of q | k | v.
struct Heads {
  std::size_t tokens = 5, heads = 4, kv_heads = 2, head_dim = 8;
  QKWidth width = QKWidth::head;
  bool norm_after_rope = false;
  reference::Rope rope{};
  bool rotates = true;

  std::size_t q_width() const { return heads * head_dim; }
  std::size_t kv_width() const { return kv_heads * head_dim; }
  std::size_t qkv_width() const { return q_width() + 2 * kv_width(); }
  std::size_t q_gain() const { return width == QKWidth::head ? head_dim : q_width(); }
  std::size_t k_gain() const { return width == QKWidth::head ? head_dim : kv_width(); }
  int rotary_width() const {
    return rotates ? static_cast<int>(rope.fraction * static_cast<double>(head_dim)) / 2 * 2 : 0;
  }
  /// A position that grows unevenly, up to a few thousand.
  static int position(std::size_t token) { return static_cast<int>(token * token * 37 % 4099); }
};

/// Row 0 .. tokens - 1 of `count` heads in x[first ..], normed and rotated.
template <class T>
void prepare(const Heads& h, const reference::Norm& norm, const Numbers<T>& gain, const Numbers<T>& bias,
             std::size_t count, std::size_t first, Numbers<T>& x) {
  const std::size_t statistics = h.width == QKWidth::all_heads ? count * h.head_dim : h.head_dim;
  for (std::size_t token = 0; token < h.tokens; ++token) {
    T* row = x.row(token) + first;
    const auto normalize = [&] {
      if (norm.kind == reference::NormKind::identity) return;
      for (std::size_t c = 0; c < count * h.head_dim; c += statistics) {
        const std::size_t at = h.width == QKWidth::head ? 0 : c;
        std::vector<T> result(statistics);
        reference::norm_row(norm, row + c, statistics,
                            norm.weight == reference::NormWeight::none ? nullptr : gain.data.data() + at,
                            norm.bias ? bias.data.data() + at : nullptr, result.data());
        std::copy(result.begin(), result.end(), row + c);
      }
    };
    if (!h.norm_after_rope) normalize();
    for (std::size_t head = 0; h.rotates && head < count; ++head)
      reference::rotate_head(h.rope, row + head * h.head_dim, h.head_dim,
                             static_cast<std::size_t>(Heads::position(token)));
    if (h.norm_after_rope) normalize();
  }
}
/// inputs: qkv, q_gain, k_gain, q_bias, k_bias.
template <class T>
Numbers<T> judged(const Heads& h, const reference::Norm& norm, const std::vector<Numbers<T>>& inputs) {
  Numbers<T> x = inputs[0];
  prepare(h, norm, inputs[1], inputs[3], h.heads, 0, x);
  prepare(h, norm, inputs[2], inputs[4], h.kv_heads, h.q_width(), x);
  return x;
}
template <class T>
std::vector<Numbers<T>> converted(const std::vector<Numbers<double>>& inputs) {
  std::vector<Numbers<T>> result;
  for (const auto& input : inputs) result.push_back(reference::convert<T>(input));
  return result;
}

template <auto Norm>
reference::Norm described() {
  reference::Norm norm{reference::NormKind::identity, reference::NormWeight::none, Norm.bias, 0};
  if constexpr (requires { Norm.eps; }) {
    norm = {std::is_same_v<policy_t<Norm>, RMSNorm> ? reference::NormKind::rms : reference::NormKind::layer,
            Norm.gain == Gain::none       ? reference::NormWeight::none
            : Norm.gain == Gain::one_plus ? reference::NormWeight::one_plus
                                          : reference::NormWeight::weight,
            Norm.bias, double{Norm.eps}};
  }
  return norm;
}

/// Angles in float are off by the rounding of position * frequency: the judge's own float formula is as much, and the
/// magnitude says so for rows where it happens to be exact.
double angle_magnitude(const Heads& h, const Numbers<double>& values) {
  double last = 0;
  for (std::size_t token = 0; token < h.tokens; ++token) last = std::max(last, double(Heads::position(token)));
  return largest(values) * (h.rotates ? 1 + last : 1);
}

template <auto Norm, Pairs pairs>
void check_case(cpu::Device& on, const Heads& h, const std::string& name) {
  Random random(h.heads * 1000 + h.head_dim * 10 + h.tokens);
  const std::vector<Numbers<double>> inputs{draw(random, h.tokens, h.qkv_width()), draw(random, 1, h.q_gain(), .4, 1),
                                            draw(random, 1, h.k_gain(), .4, 1), draw(random, 1, h.q_gain(), .3),
                                            draw(random, 1, h.k_gain(), .3)};
  const auto norm = described<Norm>();
  const auto judge = judged<double>(h, norm, inputs);
  const auto naive = judged<float>(h, norm, converted<float>(inputs));
  const RoPE rope{.theta = static_cast<float>(h.rope.theta), .pairs = pairs};
  std::vector<float> frequencies;
  for (int pair = 0; pair < h.rotary_width() / 2; ++pair)
    frequencies.push_back(static_cast<float>(rope.frequency(pair, h.rotary_width())));
  const Rotation<pairs> rotation{frequencies.data(), h.rotary_width(), 1.f};
  // tokens go to cache rows in another order, with rows between them
  std::vector<std::int32_t> position;
  std::vector<std::int64_t> row;
  for (std::size_t token = 0; token < h.tokens; ++token) {
    position.push_back(Heads::position(token));
    row.push_back(static_cast<std::int64_t>(2 * (h.tokens - 1 - token) + 1));
  }
  const std::size_t stride = h.qkv_width() + 3, cache_rows = 2 * h.tokens + 1;
  const auto qkv = strided(inputs[0], stride), q_gain = floats(inputs[1]), k_gain = floats(inputs[2]),
             q_bias = floats(inputs[3]), k_bias = floats(inputs[4]);
  std::vector<float> q(h.tokens * h.q_width(), unset), k(cache_rows * h.kv_width(), unset), v = k;
  HeadsArgs<float> args{.q = q.data(),
                        .k = k.data(),
                        .v = v.data(),
                        .qkv = qkv.data(),
                        .q_gain = q_gain.data(),
                        .k_gain = k_gain.data(),
                        .q_bias = q_bias.data(),
                        .k_bias = k_bias.data(),
                        .position = position.data(),
                        .kv_row = row.data(),
                        .tokens = static_cast<std::int64_t>(h.tokens),
                        .heads = static_cast<int>(h.heads),
                        .kv_heads = static_cast<int>(h.kv_heads),
                        .head_dim = static_cast<int>(h.head_dim),
                        .qkv_stride = static_cast<std::int64_t>(stride),
                        .per_head_gain = h.width == QKWidth::head_own_weights,
                        .all_heads = h.width == QKWidth::all_heads,
                        .norm_after_rope = h.norm_after_rope};
  prepare_heads(on, norm_form(fixed<Norm>), rotation, args);
  std::vector<float> ours;
  for (std::size_t token = 0; token < h.tokens; ++token) {
    const auto append = [&](const std::vector<float>& from, std::size_t at, std::size_t width) {
      ours.insert(ours.end(), from.begin() + static_cast<std::ptrdiff_t>(at * width),
                  from.begin() + static_cast<std::ptrdiff_t>((at + 1) * width));
    };
    append(q, token, h.q_width());
    append(k, static_cast<std::size_t>(row[token]), h.kv_width());
    append(v, static_cast<std::size_t>(row[token]), h.kv_width());
  }
  check(name, judge, naive, ours, h.head_dim, angle_magnitude(h, judge));
  for (std::size_t between = 0; between < k.size(); between += 2 * h.kv_width())
    CHECK_MESSAGE((std::isnan(k[between]) && std::isnan(v[between])), name, ": writes other rows of the cache");

  // without kv_row token t goes to row t
  std::vector<float> dense_k(h.tokens * h.kv_width()), dense_v = dense_k, dense_q(q.size());
  args.q = dense_q.data();
  args.k = dense_k.data();
  args.v = dense_v.data();
  args.kv_row = nullptr;
  prepare_heads(on, norm_form(fixed<Norm>), rotation, args);
  CHECK(dense_q == q);
  for (std::size_t token = 0; token < h.tokens; ++token)
    for (std::size_t i = 0; i < h.kv_width(); ++i)
      CHECK(dense_k[token * h.kv_width() + i] == k[static_cast<std::size_t>(row[token]) * h.kv_width() + i]);

  const auto d = draw(random, h.tokens, h.qkv_width());
  const auto pull = [&]<class T>(T) {
    return reference::pullback<T>([&](const auto& x) { return judged(h, norm, x); }, converted<T>(inputs),
                                  reference::convert<T>(d));
  };
  const std::vector<Numbers<double>> exact = pull(double{});
  const std::vector<Numbers<float>> plain = pull(float{});
  const auto all = floats(d);
  std::vector<float> dq, dk, dv;
  for (std::size_t token = 0; token < h.tokens; ++token) {
    const auto from = all.begin() + static_cast<std::ptrdiff_t>(token * h.qkv_width());
    const auto q_end = from + static_cast<std::ptrdiff_t>(h.q_width());
    const auto k_end = q_end + static_cast<std::ptrdiff_t>(h.kv_width());
    dq.insert(dq.end(), from, q_end);
    dk.insert(dk.end(), q_end, k_end);
    dv.insert(dv.end(), k_end, from + static_cast<std::ptrdiff_t>(h.qkv_width()));
  }
  std::vector<float> dqkv(h.tokens * stride, unset), dq_gain(h.q_gain()), dk_gain(h.k_gain()), dq_bias(h.q_gain()),
      dk_bias(h.k_gain());
  HeadsBackwardArgs<float> back{.dqkv = dqkv.data(),
                                .dq = dq.data(),
                                .dk = dk.data(),
                                .dv = dv.data(),
                                .dq_gain = dq_gain.data(),
                                .dk_gain = dk_gain.data(),
                                .dq_bias = dq_bias.data(),
                                .dk_bias = dk_bias.data(),
                                .forward = args};
  prepare_heads_backward(on, norm_form(fixed<Norm>), rotation, back);
  const double size = largest(d) * (1 + largest(inputs[1])) * 30;  // 30: 1 / deviation of a head of few channels
  check(name + " dqkv", exact[0], plain[0], dense(dqkv, h.tokens, h.qkv_width(), stride), h.head_dim,
        angle_magnitude(h, exact[0]) + size);
  CHECK(gaps_untouched(dqkv, h.qkv_width(), stride));
  const std::size_t terms = h.tokens * h.heads;
  const double of_gain = angle_magnitude(h, d) * std::sqrt(static_cast<double>(terms)) * 3;
  if (Norm.gain != Gain::none) {
    check(name + " dq_gain", exact[1], plain[1], dq_gain, terms, of_gain);
    check(name + " dk_gain", exact[2], plain[2], dk_gain, terms, of_gain);
  }
  if (Norm.bias) {
    check(name + " dq_bias", exact[3], plain[3], dq_bias, terms, of_gain);
    check(name + " dk_bias", exact[4], plain[4], dk_bias, terms, of_gain);
  }
  back.dq_gain = back.dk_gain = back.dq_bias = back.dk_bias = nullptr;  // not wanted
  const std::vector<float> with_all = std::exchange(dqkv, std::vector<float>(dqkv.size(), unset));
  back.dqkv = dqkv.data();
  prepare_heads_backward(on, norm_form(fixed<Norm>), rotation, back);
  CHECK((dense(dqkv, h.tokens, h.qkv_width(), stride) == dense(with_all, h.tokens, h.qkv_width(), stride)));
}

reference::Rope rope_of(double theta, double fraction = 1) {
  reference::Rope rope;
  rope.theta = theta;
  rope.fraction = fraction;
  return rope;
}

inline constexpr RMSNorm rms{.eps = 1e-2f};
inline constexpr RMSNorm rms_one{.eps = 1e-2f, .gain = Gain::one_plus};
inline constexpr LayerNorm layer{.eps = 1e-2f};

}  // namespace

TEST_CASE("split and RoPE: pairs, widths, parts of a head") {
  cpu::Device on(2);
  for (const std::size_t head_dim : {2u, 4u, 6u, 8u, 10u, 16u, 18u, 34u, 40u})
    for (const std::size_t tokens : {0u, 1u, 9u}) {
      Heads h{.tokens = tokens, .heads = 3, .kv_heads = 3, .head_dim = head_dim, .rope = rope_of(500)};
      const std::string at = "head_dim " + std::to_string(head_dim) + " tokens " + std::to_string(tokens);
      check_case<NoNorm{}, Pairs::halves>(on, h, "halves " + at);
      h.rope.pairs = reference::Pairs::adjacent;
      check_case<NoNorm{}, Pairs::adjacent>(on, h, "adjacent " + at);
    }
  Heads part{.head_dim = 16, .rope = rope_of(100, .25)};
  check_case<NoNorm{}, Pairs::halves>(on, part, "a quarter turns");
  part.rope.pairs = reference::Pairs::adjacent;
  check_case<NoNorm{}, Pairs::adjacent>(on, part, "a quarter turns, adjacent");
}
TEST_CASE("no position, no norm: q, k and v as they come, head_dim from 1 on") {
  cpu::Device on(2);
  for (const std::size_t head_dim : {1u, 3u, 5u, 17u})
    check_case<NoNorm{}, Pairs::halves>(on, {.head_dim = head_dim, .rotates = false}, std::to_string(head_dim));
}
TEST_CASE("q/k norm of every width, before and after RoPE") {
  cpu::Device on(2);
  for (const auto width : {QKWidth::head, QKWidth::head_own_weights, QKWidth::all_heads})
    for (const bool after : {false, true})
      for (const std::size_t heads : {2u, 6u})
        for (const std::size_t tokens : {1u, 37u}) {  // 37: more than one chunk of partial sums
          Heads h{.tokens = tokens,
                  .heads = heads,
                  .kv_heads = 2,
                  .head_dim = 6,
                  .width = width,
                  .norm_after_rope = after,
                  .rope = rope_of(100)};
          const std::string at = "width " + std::to_string(static_cast<int>(width)) + (after ? " after" : " before") +
                                 " heads " + std::to_string(heads) + " tokens " + std::to_string(tokens);
          check_case<rms, Pairs::halves>(on, h, "rms " + at);
          check_case<rms_one, Pairs::halves>(on, h, "1 + w " + at);
          check_case<layer, Pairs::halves>(on, h, "layer " + at);
        }
}
