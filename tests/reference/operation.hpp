/// The operations of a transformer as plain formulas on rows and small matrices, templated on the number type.
#pragma once
#include <cmath>
#include <cstddef>
#include <stdexcept>
#include <type_traits>
#include <vector>

#include "config.hpp"
#include "number.hpp"
#include "tensor.hpp"

namespace reference {

/// y = normalized x * factor + bias; weight and bias may be null where the norm has none.
template <class T>
void norm_row(const Norm& norm, const T* x, std::size_t width, const T* weight, const T* bias, T* y) {
  using std::sqrt;
  const T n = constant<T>(static_cast<double>(width));
  T mean = constant<T>(0);
  if (norm.kind == NormKind::layer) {
    for (std::size_t i = 0; i < width; ++i) mean = mean + x[i];
    mean = mean / n;
  }
  T squares = constant<T>(0);
  for (std::size_t i = 0; i < width; ++i) squares = squares + (x[i] - mean) * (x[i] - mean);
  const T deviation = sqrt(squares / n + constant<T>(norm.eps));
  for (std::size_t i = 0; i < width; ++i) {
    y[i] = norm.kind == NormKind::identity ? x[i] : (x[i] - mean) / deviation;
    if (weight != nullptr) {
      y[i] = y[i] * (norm.weight == NormWeight::one_plus ? constant<T>(1) + weight[i] : weight[i]);
    }
    if (bias != nullptr) y[i] = y[i] + bias[i];
  }
}

/// norm_row of every row.
template <class T>
Tensor<T> norm_rows(const Norm& norm, const Tensor<T>& x, const std::type_identity_t<Tensor<T>>* weight = nullptr,
                    const std::type_identity_t<Tensor<T>>* bias = nullptr) {
  Tensor<T> y(x.shape);
  for (std::size_t r = 0; r < x.rows(); ++r) {
    norm_row(norm, x.row(r), x.columns(), weight ? weight->data.data() : nullptr, bias ? bias->data.data() : nullptr,
             y.row(r));
  }
  return y;
}

/// y[r, o] = sum_i x[r, i] weight[o, i] (+ bias[o]).
template <class T>
Tensor<T> linear(const Tensor<T>& x, const Tensor<T>& weight, const std::type_identity_t<Tensor<T>>* bias = nullptr) {
  if (x.columns() != weight.columns()) throw std::invalid_argument("reference: linear: widths differ");
  Tensor<T> y({x.rows(), weight.rows()});
  for (std::size_t r = 0; r < x.rows(); ++r) {
    for (std::size_t o = 0; o < weight.rows(); ++o) {
      y(r, o) = dot(x.row(r), weight.row(o), x.columns());
      if (bias != nullptr) y(r, o) = y(r, o) + bias->data[o];
    }
  }
  return y;
}

/// 1 / (1 + e^-x), without overflow.
template <class T>
T sigmoid(const T& x) {
  using std::exp;
  const T one = constant<T>(1);
  if (x < constant<T>(0)) return exp(x) / (one + exp(x));
  return one / (one + exp(-x));
}

/// The two forms of GELU: x Phi(x), and its tanh approximation (Hendrycks & Gimpel 2016).
template <class T>
T gelu(const T& x, bool exact) {
  using std::erf;
  using std::tanh;
  const T half = constant<T>(0.5), one = constant<T>(1);
  if (exact) return half * x * (one + erf(x * constant<T>(0.70710678118654752440)));
  return half * x * (one + tanh(constant<T>(0.79788456080286535588) * (x + constant<T>(0.044715) * x * x * x)));
}

template <class T>
T activate(Activation activation, const T& x) {
  using std::exp;
  const T zero = constant<T>(0), one = constant<T>(1);
  const bool positive = x > zero;
  switch (activation) {
    case Activation::identity:
      return x;
    case Activation::sigmoid:
      return sigmoid(x);
    case Activation::relu:
      return positive ? x : zero;
    case Activation::relu2:
      return positive ? x * x : zero;
    case Activation::gelu_erf:
      return gelu(x, true);
    case Activation::gelu_tanh:
      return gelu(x, false);
    case Activation::silu:
      return x * sigmoid(x);
    case Activation::elu:
      return positive ? x : exp(x) - one;
    case Activation::selu:
      return constant<T>(1.0507009873554804934) * (positive ? x : constant<T>(1.6732632423543772848) * (exp(x) - one));
    case Activation::quick_gelu:
      return x * sigmoid(constant<T>(1.702) * x);
  }
  throw std::invalid_argument("reference: unknown activation");
}

/// The index between two frequencies at which `rotations` turns happen within the original length (YaRN).
template <class F>
F yarn_index(const Rope& rope, std::size_t width, double rotations) {
  using std::log;
  const F two_pi = F(6.283185307179586477);
  return F(width) * log(F(rope.original_length) / (F(rotations) * two_pi)) / (F(2) * log(F(rope.theta)));
}

/// Blend of f / factor (slow pairs) and f (fast pairs). Peng et al. 2023, arXiv:2309.00071.
template <class F>
F yarn_frequency(const Rope& rope, std::size_t width, std::size_t i, F f) {
  using std::ceil;
  using std::floor;
  F low = floor(yarn_index<F>(rope, width, rope.beta_fast));
  F high = ceil(yarn_index<F>(rope, width, rope.beta_slow));
  low = low < F(0) ? F(0) : low;
  high = high > F(width - 1) ? F(width - 1) : high;
  if (low == high) high += F(0.001);
  F ramp = (F(i) - low) / (high - low);
  ramp = ramp < F(0) ? F(0) : ramp > F(1) ? F(1) : ramp;
  return f / F(rope.factor) * ramp + f * (F(1) - ramp);
}

/// Llama 3's rule: short waves stay, long waves are divided by factor, between them a linear blend.
template <class F>
F llama3_frequency(const Rope& rope, F f) {
  const F wave = F(6.283185307179586477) / f;
  const F length = F(rope.original_length), low = F(rope.low_frequency), high = F(rope.high_frequency);
  if (wave < length / high) return f;
  if (wave > length / low) return f / F(rope.factor);
  const F smooth = (length / wave - low) / (high - low);
  return (F(1) - smooth) * f / F(rope.factor) + smooth * f;
}

/// Angle per position of pair i among the `width` elements that turn.
template <class F>
F rope_frequency(const Rope& rope, std::size_t width, std::size_t i) {
  using std::pow;
  const F f = F(1) / pow(F(rope.theta), F(2 * i) / F(width));
  switch (rope.scaling) {
    case RopeScaling::none:
      return f;
    case RopeScaling::linear:
      return f / F(rope.factor);
    case RopeScaling::llama3:
      return llama3_frequency(rope, f);
    case RopeScaling::yarn:
      return yarn_frequency(rope, width, i, f);
  }
  throw std::invalid_argument("reference: unknown RoPE scaling");
}

/// Rotates one head: (a, b) -> (a cos - b sin, b cos + a sin) for each pair. Su et al. 2021, arXiv:2104.09864.
template <class T>
void rotate_head(const Rope& rope, T* x, std::size_t head_dim, std::size_t position) {
  using F = Base<T>;
  using std::cos;
  using std::log;
  using std::sin;
  const auto width = static_cast<std::size_t>(rope.fraction * static_cast<double>(head_dim));
  F magnitude = F(1);
  if (rope.scaling == RopeScaling::yarn) {
    magnitude = F(rope.attention_factor ? *rope.attention_factor : 0.1 * log(rope.factor) + 1);
  }
  for (std::size_t i = 0; i < width / 2; ++i) {
    const F angle = F(position) * rope_frequency<F>(rope, width, i);
    const T c = T(cos(angle) * magnitude), s = T(sin(angle) * magnitude);
    T& first = rope.pairs == Pairs::halves ? x[i] : x[2 * i];
    T& second = rope.pairs == Pairs::halves ? x[i + width / 2] : x[2 * i + 1];
    const T a = first, b = second;
    first = a * c - b * s;
    second = b * c + a * s;
  }
}

/// Slope of one head (Press et al. 2021, arXiv:2108.12409): 2^(-8 i / c) for the first c heads, c the largest power
/// of two that is at most `heads`; every second slope of the series of 2c for the others.
inline double alibi_slope(std::size_t heads, std::size_t head) {
  std::size_t c = 1;
  while (2 * c <= heads) c *= 2;
  const auto power = static_cast<double>(c);
  if (head < c) return std::pow(2.0, -8.0 * static_cast<double>(head + 1) / power);
  return std::pow(2.0, -4.0 * (2.0 * static_cast<double>(head - c + 1) - 1.0) / power);
}

/// T5's bucket of (key - query); Raffel et al. 2019, arXiv:1910.10683.
inline std::size_t bucket_of(const Buckets& buckets, std::size_t query, std::size_t key) {
  std::size_t count = buckets.count, first = 0;
  std::size_t distance = query > key ? query - key : 0;
  if (buckets.bidirectional) {
    count /= 2;
    if (key > query) {
      first = count;
      distance = key - query;
    }
  }
  const std::size_t exact = count / 2;
  if (distance < exact) return first + distance;
  const double share = std::log(static_cast<double>(distance) / static_cast<double>(exact)) /
                       std::log(static_cast<double>(buckets.max_distance) / static_cast<double>(exact));
  const auto bucket = exact + static_cast<std::size_t>(share * static_cast<double>(count - exact));
  return first + (bucket < count ? bucket : count - 1);
}

/// Whether the query at one position may look at the key at another.
inline bool sees(const Mask& mask, std::size_t query, std::size_t key, std::size_t prefix) {
  switch (mask.kind) {
    case MaskKind::causal:
      return key <= query;
    case MaskKind::bidirectional:
      return true;
    case MaskKind::sliding:
      return key <= query && query - key < mask.window;
    case MaskKind::chunked:
      return key <= query && key / mask.window == query / mask.window;
    case MaskKind::prefix:
      return key <= query || key < prefix;
  }
  throw std::invalid_argument("reference: unknown mask");
}

/// Probabilities from scores.
template <class T>
void softmax(std::vector<T>& scores) {
  using std::exp;
  if (scores.empty()) throw std::invalid_argument("reference: softmax of nothing: a query sees no key");
  T largest = scores[0];
  for (const T& score : scores) largest = score > largest ? score : largest;
  T sum = constant<T>(0);
  for (T& score : scores) sum = sum + (score = exp(score - largest));
  for (T& score : scores) score = score / sum;
}

/// What the score of a query and a key depends on besides their vectors.
template <class T>
struct ScoreRule {
  Attention attention;
  Layer layer;
  const Buckets* buckets = nullptr;        ///< PositionKind::buckets
  const Tensor<T>* bucket_bias = nullptr;  ///< [buckets, heads]
  std::size_t prefix = 0;
  std::size_t first_query = 0;  ///< position of query row 0; keys start at 0
};

/// Dot product, scale, soft-cap, position bias, in this order. ALiBi's bias is slope * (key - query) under every mask.
template <class T>
T score(const ScoreRule<T>& rule, const T* q, const T* k, std::size_t head, std::size_t query, std::size_t key) {
  using std::sqrt;
  using std::tanh;
  const Attention& a = rule.attention;
  const bool alibi = rule.layer.position == PositionKind::alibi;
  const double distance = static_cast<double>(key) - static_cast<double>(query);
  const T slope_bias = alibi ? constant<T>(alibi_slope(a.heads, head) * distance) : constant<T>(0);
  T s = dot(q, k, a.head_dim);
  if (alibi && a.alibi_before_scale) s = s + slope_bias;
  s = s * constant<T>(a.scale ? *a.scale : 1 / sqrt(static_cast<double>(a.head_dim)));
  if (a.soft_cap) s = constant<T>(*a.soft_cap) * tanh(s / constant<T>(*a.soft_cap));
  if (alibi && !a.alibi_before_scale) s = s + slope_bias;
  if (rule.layer.position == PositionKind::buckets) {
    s = s + (*rule.bucket_bias)(bucket_of(*rule.buckets, query, key), head);
  }
  return s;
}

/// One query of one head: y = sum over visible keys of softmax(scores) * value.
template <class T>
void attend_one(const ScoreRule<T>& rule, const T* q, const Tensor<T>& k, const Tensor<T>& v, std::size_t head,
                std::size_t query, T* y) {
  const Attention& a = rule.attention;
  const std::size_t column = head / (a.heads / a.kv_heads) * a.head_dim;
  std::vector<std::size_t> keys;
  std::vector<T> weights;
  for (std::size_t key = 0; key < k.rows(); ++key) {
    if (!sees(rule.layer.mask, query, key, rule.prefix)) continue;
    keys.push_back(key);
    weights.push_back(score(rule, q, k.row(key) + column, head, query, key));
  }
  softmax(weights);
  std::vector<T> values(keys.size());
  for (std::size_t i = 0; i < a.head_dim; ++i) {
    for (std::size_t j = 0; j < keys.size(); ++j) values[j] = v(keys[j], column + i);
    y[i] = dot(weights.data(), values.data(), keys.size());
  }
}

/// q: [queries, heads * head_dim]; k, v: [keys, kv_heads * head_dim], normed and rotated already.
/// Result: [queries, heads * head_dim].
template <class T>
Tensor<T> attend(const ScoreRule<T>& rule, const Tensor<T>& q, const Tensor<T>& k, const Tensor<T>& v) {
  const Attention& a = rule.attention;
  Tensor<T> y(q.shape);
  for (std::size_t r = 0; r < q.rows(); ++r) {
    for (std::size_t head = 0; head < a.heads; ++head) {
      const std::size_t column = head * a.head_dim;
      attend_one(rule, q.row(r) + column, k, v, head, rule.first_query + r, y.row(r) + column);
    }
  }
  return y;
}

/// Cross-entropy of one row of logits, with smoothing and z-loss.
template <class T>
T token_loss(const LossOptions& options, const T* logits, std::size_t vocab, std::size_t label) {
  using std::exp;
  using std::log;
  T largest = logits[0];
  for (std::size_t v = 1; v < vocab; ++v) largest = logits[v] > largest ? logits[v] : largest;
  T sum = constant<T>(0), total = constant<T>(0);
  for (std::size_t v = 0; v < vocab; ++v) {
    sum = sum + exp(logits[v] - largest);
    total = total + logits[v];
  }
  const T log_z = largest + log(sum);
  const T nll = log_z - logits[label];
  const T uniform = log_z - total / constant<T>(static_cast<double>(vocab));
  const double smoothing = options.label_smoothing;
  return constant<T>(1 - smoothing) * nll + constant<T>(smoothing) * uniform +
         constant<T>(options.z_loss) * log_z * log_z;
}

}  // namespace reference
