/// An architecture as run-time data: what a type is, what a checkpoint's config says, and the two compared field by
/// field.
#pragma once
#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "typeformer/policy/composition.hpp"

namespace typeformer::inline TYPEFORMER_ABI {

/// A norm: its policy's name ("RMSNorm", "NoNorm", ...) and fields.
struct NormInfo {
  std::string kind = "NoNorm";
  float eps = 0.f;
  Gain gain = Gain::none;
  bool bias = false;
};
/// A position policy; of the fields those count that its kind has.
struct PositionInfo {
  std::string kind = "NoPosition";
  float theta = 0.f, fraction = 1.f;
  Pairs pairs = Pairs::halves;
  RopeScaling scaling{};
  int buckets = 0, max_distance = 0;
  bool bidirectional = false;
  int offset = 0;
  float base = 0.f;
  SinusoidLayout layout = SinusoidLayout::paper;
};
/// A mask and its window or chunk (0: it has none).
struct MaskInfo {
  std::string kind = "Causal";
  int size = 0;
};
/// The norm on query and key, kind "NoNorm" when there is none; see QKNorm.
struct QKNormInfo {
  NormInfo norm;
  QKWidth width = QKWidth::head;
  bool after_rope = false;
};
/// The layers that differ: the first `locals` of every `period`.
struct LocalInfo {
  int period = 0, locals = 0;
  PositionInfo position;
  MaskInfo mask;
};

/// One stack with every default resolved: head_dim, scales and factors are numbers.
struct StackInfo {
  Dims dims;
  NormInfo norm;
  std::string activation;
  PositionInfo position;
  int heads = 0, kv_heads = 0, head_dim = 0;
  float score_scale = 0.f, softcap = 0.f;
  std::string layout = "PreNorm{}";
  MaskInfo mask;
  bool cross_attention = false;
  MaskInfo cross_mask{"Bidirectional", 0};  ///< which source positions a target position sees
  QKNormInfo qk_norm;
  Biases biases{false, false, false, false};
  bool tied = false, has_head = true;
  float embedding_scale = 1.f, logit_scale = 1.f, final_softcap = 0.f;
  NormInfo embedding_norm;
  std::optional<LocalInfo> local;
  std::string pattern = "LocalLayers";  ///< the layer pattern's name when it is a user's own
};

/// A model: one stack, or an encoder and a decoder.
struct Architecture {
  std::string name;
  StackInfo stack;  ///< the decoder or only stack
  std::optional<StackInfo> encoder;
};

namespace detail {

/// The name of a type as its author wrote it, without namespaces: for policies that the library does not know.
template <class P>
std::string type_name() {
  std::string_view text = __PRETTY_FUNCTION__;  // "... [with P = ns::DyT]" or "... [P = ns::DyT]"
  text = text.substr(text.find("P = ") + 4);
  text = text.substr(0, text.find_first_of(";]"));
  const auto angle = text.find('<');
  const auto colon = text.substr(0, angle).rfind("::");
  return std::string(colon == std::string_view::npos ? text : text.substr(colon + 2));
}

/// The name an alias would use: Gated<SiLU> is SwiGLU.
template <class P>
std::string policy_name() {
  if constexpr (std::is_same_v<P, SwiGLU>)
    return "SwiGLU";
  else if constexpr (std::is_same_v<P, GeGLU>)
    return "GeGLU";
  else if constexpr (std::is_same_v<P, GeGLUTanh>)
    return "GeGLUTanh";
  else if constexpr (std::is_same_v<P, ReGLU>)
    return "ReGLU";
  else if constexpr (std::is_same_v<P, LiGLU>)
    return "LiGLU";
  else if constexpr (std::is_same_v<P, GLU>)
    return "GLU";
  else
    return type_name<P>();
}

template <auto Norm>
NormInfo norm_info() {
  NormInfo info{policy_name<policy_t<Norm>>(), 0.f, Norm.gain, Norm.bias};
  if constexpr (requires { Norm.eps; }) info.eps = Norm.eps;
  return info;
}

template <auto Position>
PositionInfo position_info() {
  using P = policy_t<Position>;
  PositionInfo info;
  info.kind = policy_name<P>();
  if constexpr (std::is_same_v<P, RoPE>) {
    info.theta = Position.theta;
    info.pairs = Position.pairs;
    info.fraction = Position.fraction;
    info.scaling = Position.scaling;
  } else if constexpr (std::is_same_v<P, T5Buckets>) {
    info.buckets = Position.buckets;
    info.max_distance = Position.max_distance;
    info.bidirectional = Position.bidirectional;
  } else if constexpr (std::is_same_v<P, LearnedPositions>) {
    info.offset = Position.offset;
  } else if constexpr (std::is_same_v<P, Sinusoidal>) {
    info.base = Position.base;
    info.layout = Position.layout;
  }
  return info;
}

template <auto Mask>
MaskInfo mask_info() {
  return {policy_name<policy_t<Mask>>(), reach(Mask)};
}

template <auto Layout>
std::string layout_name() {
  if constexpr (std::is_same_v<policy_t<Layout>, Parallel>)
    return shares_norm<Layout>() ? "Parallel{}" : "Parallel{.shared_norm = false}";
  else
    return policy_name<policy_t<Layout>>() + "{}";
}

template <class S>
std::optional<LocalInfo> local_info() {
  if constexpr (S::layer_kinds == 2 && requires {
                  S::pattern.period;
                  S::pattern.locals;
                }) {
    using Local = typename S::template Layer<1>;
    return LocalInfo{S::pattern.period, S::pattern.locals, position_info<Local::position>(), mask_info<Local::mask>()};
  } else {
    return std::nullopt;
  }
}

/// Every field of a stack as one text, for comparison (defined below).
inline std::string fields_text(const StackInfo& info);

template <class S>
StackInfo stack_info();

/// True when the kinds of layers differ in more than mask and position, which LocalInfo cannot tell.
template <class S>
bool kinds_differ_further() {
  if constexpr (S::layer_kinds == 2) {
    const StackInfo plain = stack_info<typename S::template Layer<0>>();
    StackInfo local = stack_info<typename S::template Layer<1>>();
    local.mask = plain.mask;
    local.position = plain.position;
    return fields_text(local) != fields_text(plain);
  } else {
    return false;
  }
}

template <class S>
StackInfo stack_info() {
  StackInfo info;
  info.dims = S::dims;
  info.norm = norm_info<S::norm>();
  info.activation = policy_name<policy_t<S::activation>>();
  info.position = position_info<S::position>();
  info.heads = S::heads;
  info.kv_heads = S::kv_heads;
  info.head_dim = S::head_dim;
  info.score_scale = S::score_scale;
  info.softcap = S::attention.softcap;
  info.layout = layout_name<S::layout>();
  info.mask = mask_info<S::mask>();
  info.cross_attention = S::cross_attention;
  info.cross_mask = mask_info<S::cross_mask>();
  info.qk_norm = {norm_info<S::qk_norm.norm>(), S::qk_norm.width, S::qk_norm.after_rope};
  info.biases = {S::biases.qkv, S::biases.output, S::biases.feed_forward, S::biases.head};
  info.tied = S::tied;
  info.has_head = S::has_head;
  info.embedding_scale = S::embedding_scale;
  info.logit_scale = S::logit_scale;
  info.final_softcap = S::final_softcap;
  info.embedding_norm = norm_info<S::embedding_norm>();
  if (!kinds_differ_further<S>()) info.local = local_info<S>();
  if (S::layer_kinds > 1 && !info.local) info.pattern = policy_name<policy_t<S::pattern>>();
  return info;
}

}  // namespace detail

/// What the type M is, as run-time data.
template <class M>
Architecture architecture_of() {
  if constexpr (EncoderDecoderComposition<M>)
    return {std::string(M::name), detail::stack_info<typename M::Decoder>(), detail::stack_info<typename M::Encoder>()};
  else
    return {std::string(M::name), detail::stack_info<M>(), std::nullopt};
}

/// A float as C++ source, the shortest that reads back the same: "1e-05f", "0.5f".
inline std::string float_text(float value) {
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, value).ptr;
  std::string source(text, end);
  if (source.find_first_of(".en") == std::string::npos) source += ".";
  return source + "f";
}

/// One comparable field of an architecture: "norm.eps" = "1e-05f".
struct ArchitectureField {
  std::string name, value;
};

namespace detail {

inline std::string text_of(bool value) { return value ? "true" : "false"; }
inline std::string text_of(Gain gain) {
  return gain == Gain::none ? "none" : gain == Gain::weight ? "weight" : "one_plus";
}
inline std::string text_of(Pairs pairs) { return pairs == Pairs::halves ? "halves" : "adjacent"; }
inline std::string text_of(QKWidth width) {
  return width == QKWidth::head ? "head" : width == QKWidth::head_own_weights ? "head_own_weights" : "all_heads";
}
inline std::string text_of(SinusoidLayout layout) {
  return layout == SinusoidLayout::paper ? "paper" : layout == SinusoidLayout::halves ? "halves" : "spread";
}
inline std::string text_of(RopeScaling::Kind kind) {
  using Kind = RopeScaling::Kind;
  return kind == Kind::none ? "none" : kind == Kind::linear ? "linear" : kind == Kind::llama3 ? "llama3" : "yarn";
}

/// Collects fields under a prefix.
class FieldList {
 public:
  explicit FieldList(std::vector<ArchitectureField>& fields) : fields_(fields) {}
  void text(std::string_view name, std::string value) {
    fields_.push_back({prefix + std::string(name), std::move(value)});
  }
  void number(std::string_view name, int value) { text(name, std::to_string(value)); }
  void real(std::string_view name, float value) { text(name, float_text(value)); }
  void flag(std::string_view name, bool value) { text(name, text_of(value)); }

  void norm(std::string_view name, const NormInfo& info) {
    text(name, info.kind);
    if (info.kind == "NoNorm") return;
    real(std::string(name) + ".eps", info.eps);
    text(std::string(name) + ".gain", text_of(info.gain));
    flag(std::string(name) + ".bias", info.bias);
  }
  void position(const std::string& name, const PositionInfo& info) {
    text(name, info.kind);
    if (info.kind == "RoPE") rope(name, info);
    if (info.kind == "T5Buckets") {
      number(name + ".buckets", info.buckets);
      number(name + ".max_distance", info.max_distance);
      flag(name + ".bidirectional", info.bidirectional);
    }
    if (info.kind == "LearnedPositions") number(name + ".offset", info.offset);
    if (info.kind == "Sinusoidal") {
      real(name + ".base", info.base);
      text(name + ".layout", text_of(info.layout));
    }
  }
  void mask(const std::string& name, const MaskInfo& info) {
    text(name, info.kind);
    if (info.size) number(name + ".size", info.size);
  }
  void stack(const StackInfo& s);

  std::string prefix;

 private:
  void rope(const std::string& name, const PositionInfo& info) {
    using Kind = RopeScaling::Kind;
    real(name + ".theta", info.theta);
    text(name + ".pairs", text_of(info.pairs));
    real(name + ".fraction", info.fraction);
    text(name + ".scaling", text_of(info.scaling.kind));
    if (info.scaling.kind == Kind::none) return;
    real(name + ".scaling.factor", info.scaling.factor);
    if (info.scaling.kind == Kind::linear) return;
    number(name + ".scaling.original_context", info.scaling.original_context);
    const bool yarn = info.scaling.kind == Kind::yarn;
    real(name + (yarn ? ".scaling.beta_fast" : ".scaling.low"), yarn ? info.scaling.beta_fast : info.scaling.low);
    real(name + (yarn ? ".scaling.beta_slow" : ".scaling.high"), yarn ? info.scaling.beta_slow : info.scaling.high);
  }
  std::vector<ArchitectureField>& fields_;
};

inline void FieldList::stack(const StackInfo& s) {
  number("vocab", s.dims.vocab);
  number("d_model", s.dims.d_model);
  number("n_layers", s.dims.n_layers);
  number("d_ff", s.dims.d_ff);
  norm("norm", s.norm);
  text("activation", s.activation);
  position("position", s.position);
  number("attention.heads", s.heads);
  number("attention.kv_heads", s.kv_heads);
  number("attention.head_dim", s.head_dim);
  real("attention.scale", s.score_scale);
  real("attention.softcap", s.softcap);
  text("layout", s.layout);
  mask("mask", s.mask);
  mask("cross_mask", s.cross_mask);
  norm("qk_norm", s.qk_norm.norm);
  if (s.qk_norm.norm.kind != "NoNorm") {
    text("qk_norm.width", text_of(s.qk_norm.width));
    flag("qk_norm.after_rope", s.qk_norm.after_rope);
  }
  flag("biases.qkv", s.biases.qkv);
  flag("biases.output", s.biases.output);
  flag("biases.feed_forward", s.biases.feed_forward);
  flag("biases.head", s.biases.head);
  flag("head", s.has_head);
  flag("tied", s.tied);
  real("embedding_scale", s.embedding_scale);
  norm("embedding_norm", s.embedding_norm);
  real("logit_scale", s.logit_scale);
  real("final_softcap", s.final_softcap);
  text("pattern", s.local ? "LocalLayers" : s.pattern == "LocalLayers" ? "none" : s.pattern);
  if (!s.local) return;
  number("local.period", s.local->period);
  number("local.locals", s.local->locals);
  position("local.position", s.local->position);
  mask("local.mask", s.local->mask);
}

}  // namespace detail

inline std::string detail::fields_text(const StackInfo& info) {
  std::vector<ArchitectureField> fields;
  detail::FieldList(fields).stack(info);
  std::string text;
  for (const ArchitectureField& field : fields) text.append(field.name).append("=").append(field.value).append("\n");
  return text;
}

/// Every field that makes the network what it is, in a fixed order. max_seq is not among them: it bounds tables, not
/// values.
inline std::vector<ArchitectureField> fields_of(const Architecture& architecture) {
  std::vector<ArchitectureField> fields;
  detail::FieldList list(fields);
  if (architecture.encoder) list.prefix = "encoder.", list.stack(*architecture.encoder), list.prefix = "decoder.";
  list.stack(architecture.stack);
  return fields;
}

}  // namespace typeformer
