/// An architecture as C++ source: the alias that a reader pastes into his program.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "typeformer/report/architecture.hpp"

namespace typeformer::inline TYPEFORMER_ABI {

namespace detail {

/// A text as a C++ string literal.
inline std::string string_source(std::string_view text) {
  std::string source = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\')
      source.append(1, '\\').append(1, c);
    else if (byte < 0x20 || byte == 0x7f)  // octal: three digits end it, whatever follows
      source.append({'\\', static_cast<char>('0' + byte / 64), static_cast<char>('0' + byte / 8 % 8),
                     static_cast<char>('0' + byte % 8)});
    else
      source += c;
  }
  return source + '"';
}

/// `Kind{.field = value, ...}` with the fields that were added.
class PolicySource {
 public:
  explicit PolicySource(std::string kind) : text_(std::move(kind)) {}
  PolicySource& field(bool wanted, std::string_view name, const std::string& value) {
    if (!wanted) return *this;
    inside_.append(inside_.empty() ? "." : ", .").append(name).append(" = ").append(value);
    return *this;
  }
  std::string source() const { return text_ + "{" + inside_ + "}"; }

 private:
  std::string text_, inside_;
};

inline std::string norm_source(const NormInfo& n) {
  if (n.kind == "NoNorm") return "NoNorm{}";
  const bool layer = n.kind == "LayerNorm", has_eps = layer || n.kind == "RMSNorm";
  return PolicySource(n.kind)
      .field(has_eps && n.eps != RMSNorm{}.eps, "eps", float_text(n.eps))
      .field(n.gain != Gain::weight, "gain", "Gain::" + text_of(n.gain))
      .field(n.bias != layer, "bias", text_of(n.bias))
      .source();
}
inline std::string scaling_source(const RopeScaling& s) {
  using Kind = RopeScaling::Kind;
  const bool yarn = s.kind == Kind::yarn;
  return PolicySource("")
      .field(true, "kind", "RopeScaling::Kind::" + text_of(s.kind))
      .field(true, "factor", float_text(s.factor))
      .field(s.kind == Kind::llama3, "low", float_text(s.low))
      .field(s.kind == Kind::llama3, "high", float_text(s.high))
      .field(s.kind != Kind::linear, "original_context", std::to_string(s.original_context))
      .field(yarn, "beta_fast", float_text(s.beta_fast))
      .field(yarn, "beta_slow", float_text(s.beta_slow))
      .source();
}
inline std::string position_source(const PositionInfo& p) {
  const bool rope = p.kind == "RoPE", buckets = p.kind == "T5Buckets", sinusoidal = p.kind == "Sinusoidal";
  return PolicySource(p.kind)
      .field(rope, "theta", float_text(p.theta))
      .field(rope && p.pairs != Pairs::halves, "pairs", "Pairs::" + text_of(p.pairs))
      .field(rope && p.fraction != 1.f, "fraction", float_text(p.fraction))
      .field(rope && p.scaling.kind != RopeScaling::Kind::none, "scaling", scaling_source(p.scaling))
      .field(buckets, "buckets", std::to_string(p.buckets))
      .field(buckets, "max_distance", std::to_string(p.max_distance))
      .field(buckets && p.bidirectional, "bidirectional", "true")
      .field(p.kind == "LearnedPositions" && p.offset != 0, "offset", std::to_string(p.offset))
      .field(sinusoidal && p.base != 1e4f, "base", float_text(p.base))
      .field(sinusoidal && p.layout != SinusoidLayout::paper, "layout", "SinusoidLayout::" + text_of(p.layout))
      .source();
}
inline std::string mask_source(const MaskInfo& m) {
  return m.kind + "{" + (m.size ? std::to_string(m.size) : "") + "}";
}
inline std::string attention_source(const StackInfo& s) {
  const auto usual = dot_product_scale(s.head_dim);
  return PolicySource("GQA")
      .field(true, "heads", std::to_string(s.heads))
      .field(true, "kv_heads", std::to_string(s.kv_heads))
      .field(s.head_dim * s.heads != s.dims.d_model, "head_dim", std::to_string(s.head_dim))
      .field(s.score_scale != usual, "scale", float_text(s.score_scale))
      .field(s.softcap != 0.f, "softcap", float_text(s.softcap))
      .source();
}
inline std::string dims_source(const Dims& d) {
  return PolicySource("Dims")
      .field(true, "vocab", std::to_string(d.vocab))
      .field(true, "d_model", std::to_string(d.d_model))
      .field(true, "n_layers", std::to_string(d.n_layers))
      .field(true, "d_ff", std::to_string(d.d_ff))
      .field(true, "max_seq", std::to_string(d.max_seq))
      .source();
}
inline std::string qk_norm_source(const QKNormInfo& q) {
  return "QKNorm<" + norm_source(q.norm) + ">" +
         PolicySource("")
             .field(q.width != QKWidth::head, "width", "QKWidth::" + text_of(q.width))
             .field(q.after_rope, "after_rope", "true")
             .source();
}
inline std::string local_source(const LocalInfo& local, const StackInfo& s) {
  std::string changes;
  const auto change = [&](const std::string& text) { changes += (changes.empty() ? "" : ", ") + text; };
  if (mask_source(local.mask) != mask_source(s.mask)) change(mask_source(local.mask));
  if (position_source(local.position) != position_source(s.position)) change(position_source(local.position));
  return "LocalLayers<" + changes + ">{.period = " + std::to_string(local.period) +
         ", .locals = " + std::to_string(local.locals) + "}";
}
/// A factor option: nothing for 1, empty braces for the default of its policy.
inline void factor_option(std::vector<std::string>& to, const std::string& kind, float value, float usual) {
  if (value != 1.f) to.push_back(kind + "{" + (value == usual ? "" : float_text(value)) + "}");
}

/// The arguments of a Transformer, one string each.
inline std::vector<std::string> argument_sources(const StackInfo& s, const std::string& name) {
  std::vector<std::string> arguments{dims_source(s.dims),         norm_source(s.norm), s.activation + "{}",
                                     position_source(s.position), attention_source(s), s.layout};
  const auto option = [&](bool wanted, const std::string& text) {
    if (wanted) arguments.push_back(text);
  };
  option(s.mask.kind != "Causal", mask_source(s.mask));
  option(s.cross_attention && s.cross_mask.kind != "Bidirectional",
         "CrossAttention<" + mask_source(s.cross_mask) + ">{}");
  option(s.qk_norm.norm.kind != "NoNorm", qk_norm_source(s.qk_norm));
  option(s.biases.qkv || s.biases.output || s.biases.feed_forward || s.biases.head,
         PolicySource("Biases")
             .field(!s.biases.qkv, "qkv", "false")
             .field(!s.biases.output, "output", "false")
             .field(!s.biases.feed_forward, "feed_forward", "false")
             .field(s.biases.head, "head", "true")
             .source());
  option(s.tied, "TiedEmbeddings{}");
  option(!s.has_head, "NoHead{}");
  factor_option(arguments, "EmbeddingScale", s.embedding_scale, EmbeddingScale{}.of(s.dims.d_model));
  option(s.embedding_norm.kind != "NoNorm", "EmbeddingNorm<" + norm_source(s.embedding_norm) + ">{}");
  factor_option(arguments, "LogitScale", s.logit_scale, LogitScale{}.of(s.dims.d_model));
  option(s.final_softcap != 0.f, "FinalSoftcap{" + float_text(s.final_softcap) + "}");
  if (s.local) arguments.push_back(local_source(*s.local, s));
  option(!name.empty(), "Name{" + string_source(name) + "}");
  return arguments;
}

inline std::string stack_source(const StackInfo& s, const std::string& alias, const std::string& name) {
  std::string text = "using " + alias + " = Transformer<";
  std::string separator = "\n    ";
  for (const std::string& argument : argument_sources(s, name)) text += separator + argument, separator = ",\n    ";
  return text + ">;\n";
}

}  // namespace detail

/// A C++ name for a model called `name`: "SmolLM2-135M" becomes SmolLM2_135M.
inline std::string alias_name(std::string_view name) {
  std::string result;
  for (const char c : name) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'), digit = c >= '0' && c <= '9';
    if (digit && result.empty()) result = "Model_";
    result += letter || digit ? c : '_';
  }
  if (result.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") == std::string::npos && !result.empty())
    result[0] = static_cast<char>(result[0] == '_' ? 'M' : result[0] - 'a' + 'A');  // a keyword begins small
  return result.empty() || result == "Model" ? "MyModel" : result;
}

/// The alias declaration of an architecture, as source that compiles after `using namespace typeformer`.
inline std::string alias_source(const Architecture& a, const std::string& alias) {
  if (!a.encoder) return detail::stack_source(a.stack, alias, a.name);
  return detail::stack_source(*a.encoder, alias + "_Encoder", "") +
         detail::stack_source(a.stack, alias + "_Decoder", a.name) + "using " + alias + " = EncoderDecoder<" + alias +
         "_Encoder, " + alias + "_Decoder>;\n";
}

}  // namespace typeformer
