/// The whole network: embeddings, blocks, final norm, head, loss. Every function is a formula of its inputs and of
/// the parameters that `Lookup` finds by name, for one sequence and any number type.
#pragma once
#include <cmath>
#include <cstddef>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "config.hpp"
#include "number.hpp"
#include "operation.hpp"
#include "tensor.hpp"

namespace reference {

/// Finds a parameter by canonical name; throws std::out_of_range when there is none.
template <class T>
using Lookup = std::function<const Tensor<T>&(const std::string&)>;

/// A stack with what it shares with the rest of the network.
struct Part {
  const Config& config;
  const Stack& stack;
  std::string prefix;  ///< "", "encoder." or "decoder."
};

inline Part encoder_part(const Config& config) { return {config, *config.encoder, "encoder."}; }
inline Part main_part(const Config& config) { return {config, config.stack, config.encoder ? "decoder." : ""}; }

template <class T>
Tensor<T> sum(Tensor<T> x, const Tensor<T>& y) {
  accumulate(x, y);
  return x;
}

/// The norm whose parameters are called `name`.
template <class T>
Tensor<T> normed(const Norm& norm, const Lookup<T>& p, const std::string& name, const Tensor<T>& x) {
  if (norm.kind == NormKind::identity) return x;
  const Tensor<T>* weight = norm.weight == NormWeight::none ? nullptr : &p(name + ".weight");
  const Tensor<T>* bias = norm.bias ? &p(name + ".bias") : nullptr;
  return norm_rows(norm, x, weight, bias);
}

template <class T>
Tensor<T> projected(const Lookup<T>& p, const std::string& name, bool bias, const Tensor<T>& x) {
  return linear(x, p(name + ".weight"), bias ? &p(name + ".bias") : nullptr);
}

/// Element i of position p's sinusoid (Vaswani et al. 2017, section 3.5).
template <class F>
F sinusoid(AddedPosition layout, std::size_t d, std::size_t position, std::size_t i) {
  using std::cos;
  using std::pow;
  using std::sin;
  const bool interleaved = layout == AddedPosition::interleaved;
  const std::size_t pair = interleaved ? i / 2 : i % (d / 2);
  const bool sine = interleaved ? i % 2 == 0 : i < d / 2;
  const F exponent = layout == AddedPosition::spaced_halves ? F(pair) / F(d / 2 - 1) : F(2 * pair) / F(d);
  const F angle = F(position) / pow(F(10000), exponent);
  return sine ? sin(angle) : cos(angle);
}

/// scale * E[id] (+ position) (+ token type), then the embedding norm.
template <class T>
Tensor<T> embed(const Part& part, const Lookup<T>& p, const std::vector<int>& ids, const std::vector<int>& types) {
  const Stack& stack = part.stack;
  const std::size_t d = part.config.d_model;
  const Tensor<T>& table = p("token_embeddings.weight");
  Tensor<T> x({ids.size(), d});
  for (std::size_t t = 0; t < ids.size(); ++t) {
    for (std::size_t i = 0; i < d; ++i) {
      x(t, i) = table(static_cast<std::size_t>(ids[t]), i) * constant<T>(part.config.embedding_scale);
      if (stack.added_position == AddedPosition::learned) {
        x(t, i) = x(t, i) + p(part.prefix + "position_embeddings.weight")(t + stack.position_offset, i);
      } else if (stack.added_position != AddedPosition::none) {
        x(t, i) = x(t, i) + T(sinusoid<Base<T>>(stack.added_position, d, t + stack.position_offset, i));
      }
      if (part.config.token_types > 0) {
        const auto type = static_cast<std::size_t>(types.empty() ? 0 : types[t]);
        x(t, i) = x(t, i) + p("token_type_embeddings.weight")(type, i);
      }
    }
  }
  return stack.embedding_norm ? normed(stack.norm, p, part.prefix + "embedding_norm", x) : x;
}

template <class T>
void clamp(const Attention& a, Tensor<T>& x) {
  if (!a.clamp) return;
  const T high = constant<T>(*a.clamp), low = constant<T>(-*a.clamp);
  for (T& value : x.data) value = value > high ? high : value < low ? low : value;
}

/// QK-norm of all heads of every row.
template <class T>
void qk_normed(const QkNorm& qk, std::size_t head_dim, const Lookup<T>& p, const std::string& name, Tensor<T>& x) {
  const std::size_t width = qk.width == QkWidth::all_heads ? x.columns() : head_dim;
  const bool own = qk.width == QkWidth::per_head;
  const T* weight = qk.norm.weight == NormWeight::none ? nullptr : p(name + ".weight").data.data();
  const T* bias = qk.norm.bias ? p(name + ".bias").data.data() : nullptr;
  std::vector<T> y(width);
  for (std::size_t r = 0; r < x.rows(); ++r) {
    for (std::size_t column = 0; column < x.columns(); column += width) {
      const std::size_t skip = own ? column : 0;
      norm_row(qk.norm, x.row(r) + column, width, weight ? weight + skip : nullptr, bias ? bias + skip : nullptr,
               y.data());
      for (std::size_t i = 0; i < width; ++i) x(r, column + i) = y[i];
    }
  }
}

/// From projected queries or keys to what is scored: clamp, QK-norm, RoPE (or RoPE, then QK-norm).
template <class T>
Tensor<T> positioned(const Attention& a, const Layer& layer, const Lookup<T>& p, const std::string& name, Tensor<T> x) {
  clamp(a, x);
  if (a.qk_norm && !a.qk_norm->after_rope) qk_normed(*a.qk_norm, a.head_dim, p, name, x);
  if (layer.position == PositionKind::rope) {
    for (std::size_t r = 0; r < x.rows(); ++r) {
      for (std::size_t column = 0; column < x.columns(); column += a.head_dim) {
        rotate_head(layer.rope, x.row(r) + column, a.head_dim, r);
      }
    }
  }
  if (a.qk_norm && a.qk_norm->after_rope) qk_normed(*a.qk_norm, a.head_dim, p, name, x);
  return x;
}

template <class T>
Tensor<T> self_attention(const Part& part, const Layer& layer, const Lookup<T>& p, const std::string& name,
                         const Tensor<T>& x, std::size_t prefix) {
  const Attention& a = part.stack.attention;
  const Tensor<T> q = positioned(a, layer, p, name + ".q_norm", projected(p, name + ".q_proj", a.bias_q, x));
  const Tensor<T> k = positioned(a, layer, p, name + ".k_norm", projected(p, name + ".k_proj", a.bias_k, x));
  Tensor<T> v = projected(p, name + ".v_proj", a.bias_v, x);
  clamp(a, v);
  ScoreRule<T> rule{a, layer, nullptr, nullptr, prefix, 0};
  if (layer.position == PositionKind::buckets) {
    rule.buckets = &part.stack.buckets;
    rule.bucket_bias = &p(part.prefix + "relative_bias.weight");
  }
  return projected(p, name + ".output_proj", a.bias_output, attend(rule, q, k, v));
}

/// Queries from the decoder, keys and values from the encoder's output; no positions, everything visible.
template <class T>
Tensor<T> cross_attention(const Part& part, const Lookup<T>& p, const std::string& name, const Tensor<T>& x,
                          const Tensor<T>& source) {
  const Attention& a = part.stack.attention;
  const Layer all{{MaskKind::bidirectional, 0}, PositionKind::none, {}};
  const Tensor<T> q = projected(p, name + ".q_proj", a.bias_q, x);
  const Tensor<T> k = projected(p, name + ".k_proj", a.bias_k, source);
  const Tensor<T> v = projected(p, name + ".v_proj", a.bias_v, source);
  return projected(p, name + ".output_proj", a.bias_output, attend(ScoreRule<T>{a, all}, q, k, v));
}

template <class T>
Tensor<T> feed_forward(const FeedForward& ffn, const Lookup<T>& p, const std::string& name, const Tensor<T>& x) {
  Tensor<T> h = projected(p, name + ".up_proj", ffn.bias, x);
  if (ffn.gated) {
    const Tensor<T> gate = projected(p, name + ".gate_proj", ffn.bias, x);
    for (std::size_t i = 0; i < h.size(); ++i) h.data[i] = activate(ffn.activation, gate.data[i]) * h.data[i];
  } else {
    for (T& value : h.data) value = activate(ffn.activation, value);
  }
  return projected(p, name + ".down_proj", ffn.bias, h);
}

/// One serial sublayer f with its norms, see Placement.
template <class T, class F>
Tensor<T> sublayer(const Stack& stack, const Lookup<T>& p, const std::string& name, const Tensor<T>& x, F f) {
  const auto before = [&](const Tensor<T>& y) { return normed(stack.norm, p, name, y); };
  const auto after = [&](const Tensor<T>& y) { return normed(stack.norm, p, name + "_post", y); };
  switch (stack.placement) {
    case Placement::pre:
      return sum(x, f(before(x)));
    case Placement::post:
      return before(sum(x, f(x)));
    case Placement::twice:
      return sum(x, after(f(before(x))));
    case Placement::sublayer_output:
      return sum(x, after(f(x)));
    case Placement::parallel_one:
    case Placement::parallel_two:
      break;
  }
  throw std::invalid_argument("reference: a parallel block has no serial sublayer");
}

/// Block i. `source` is the encoder's output for a decoder with cross-attention, else null.
template <class T>
Tensor<T> block(const Part& part, std::size_t i, const Lookup<T>& p, const Tensor<T>& x, const Tensor<T>* source,
                std::size_t prefix) {
  const Stack& stack = part.stack;
  const std::string name = part.prefix + "layers." + std::to_string(i);
  const auto attention = [&](const Tensor<T>& y) {
    return self_attention(part, stack.layers[i], p, name + ".attn", y, prefix);
  };
  const auto cross = [&](const Tensor<T>& y) { return cross_attention(part, p, name + ".cross", y, *source); };
  const auto ffn = [&](const Tensor<T>& y) { return feed_forward(stack.ffn, p, name + ".ffn", y); };
  if (stack.placement == Placement::parallel_one || stack.placement == Placement::parallel_two) {
    if (source != nullptr) throw std::invalid_argument("reference: parallel blocks have no cross-attention");
    const Tensor<T> first = normed(stack.norm, p, name + ".ln1", x);
    if (stack.placement == Placement::parallel_one) return sum(sum(x, attention(first)), ffn(first));
    return sum(sum(x, attention(first)), ffn(normed(stack.norm, p, name + ".ln2", x)));
  }
  Tensor<T> y = sublayer(stack, p, name + ".ln1", x, attention);
  if (source != nullptr) y = sublayer(stack, p, name + ".ln_cross", y, cross);
  return sublayer(stack, p, name + ".ln2", y, ffn);
}

template <class T>
Tensor<T> final_norm(const Part& part, const Lookup<T>& p, const Tensor<T>& x) {
  return part.stack.final_norm ? normed(part.stack.norm, p, part.prefix + "ln_final", x) : x;
}

/// Logits of every position: [tokens, vocab].
template <class T>
Tensor<T> head(const Config& config, const Lookup<T>& p, const Tensor<T>& x) {
  using std::tanh;
  const Tensor<T>& weight = p(config.head.tied ? "token_embeddings.weight" : "lm_head.weight");
  Tensor<T> logits = linear(x, weight, config.head.bias ? &p("lm_head.bias") : nullptr);
  for (T& logit : logits.data) {
    logit = logit * constant<T>(config.head.scale);
    if (!config.head.soft_cap) continue;
    const T cap = constant<T>(*config.head.soft_cap);
    logit = cap * tanh(logit / cap);
  }
  return logits;
}

/// This sequence's part of the mean loss over a batch with `valid` valid labels.
template <class T>
T sequence_loss(const LossOptions& options, const Tensor<T>& logits, const std::vector<int>& labels,
                std::size_t valid) {
  if (labels.size() != logits.rows()) throw std::invalid_argument("reference: labels and positions differ in number");
  T total = constant<T>(0);
  for (std::size_t t = 0; t < labels.size(); ++t) {
    if (labels[t] == ignored_label) continue;
    total = total + token_loss(options, logits.row(t), logits.columns(), static_cast<std::size_t>(labels[t]));
  }
  return total / constant<T>(static_cast<double>(valid));
}

/// Labels that count, over the whole batch.
inline std::size_t valid_labels(const Batch& batch) {
  std::size_t valid = 0;
  for (const Sequence& sequence : batch) {
    for (int label : sequence.labels) valid += label == ignored_label ? 0u : 1u;
  }
  if (valid == 0) throw std::invalid_argument("reference: no valid label");
  return valid;
}

}  // namespace reference
