/// describe<M>(): what a composition is and costs, for readers; describe_json<M>(): the same for programs.
#pragma once
#include <charconv>
#include <cmath>
#include <string>
#include <string_view>

#include "typeformer/report/description.hpp"
#include "typeformer/report/json.hpp"

namespace typeformer::inline TYPEFORMER_ABI {

namespace detail {

/// 134515008 as "134,515,008". At least 0.
inline std::string grouped(double value) {
  char digits[64];
  const auto end =
      std::to_chars(digits, digits + sizeof digits, std::floor(value + .5), std::chars_format::fixed, 0).ptr;
  std::string text;
  for (const char* at = digits; at != end; ++at) {
    if (at != digits && (end - at) % 3 == 0) text += ',';
    text += *at;
  }
  return text;
}
inline std::string grouped(std::int64_t value) { return grouped(static_cast<double>(value)); }
/// Three digits that matter: "0.912", "4430".
inline std::string rounded(double value) {
  char digits[64];
  const int decimals = value >= 100 || value == 0 ? 0 : value >= 10 ? 1 : value >= 1 ? 2 : 3;
  return {digits, std::to_chars(digits, digits + sizeof digits, value, std::chars_format::fixed, decimals).ptr};
}
/// "0..4, 6".
inline std::string layer_ranges(const std::vector<int>& layers) {
  std::string text;
  for (std::size_t i = 0; i < layers.size();) {
    std::size_t last = i;
    while (last + 1 < layers.size() && layers[last + 1] == layers[last] + 1) ++last;
    text.append(text.empty() ? "" : ", ").append(std::to_string(layers[i]));
    if (last > i) text.append("..").append(std::to_string(layers[last]));
    i = last + 1;
  }
  return text;
}
inline std::string padded(std::string text, std::size_t width, bool left = true) {
  const std::size_t missing = text.size() < width ? width - text.size() : 0;
  return left ? text + std::string(missing, ' ') : std::string(missing, ' ') + text;
}
inline std::string joined(const std::vector<std::string>& parts, std::string_view separator) {
  std::string text;
  for (const std::string& part : parts) text.append(text.empty() ? "" : separator).append(part);
  return text;
}

inline std::string parameters_text(const Description& d) {
  std::string text = "Parameters\n";
  for (const ParameterGroup& g : d.groups) {
    const std::string shape =
        "[" + std::to_string(g.rows) + (g.columns > 1 ? ", " + std::to_string(g.columns) : "") + "]";
    const std::string where = g.layers.empty() ? "" : "layers " + layer_ranges(g.layers);
    text += "  " + padded(g.name, 34) + padded(where, 18) + padded(shape, 18) + padded(grouped(g.count()), 16, false) +
            "\n";
  }
  return text + "  " + padded("in all", 70) + padded(grouped(d.parameters), 16, false) + "\n";
}

inline std::string costs_text(const Description& d) {
  std::string text;
  for (const auto& [stack, c] : d.costs) {
    const auto line = [&text](const std::string& name, const std::string& value) {
      text += "  " + padded(name, 26) + value + "\n";
    };
    const double n = c.context;
    text += (stack.empty() ? "Costs" : "Costs of the " + stack) + " at " + grouped(n) + " positions" +
            (stack == "decoder" ? ", the source as many" : "") + "; weights of " +
            std::to_string(d.options.weight_bytes) + " bytes, cache of " + std::to_string(d.options.cache_bytes) +
            ", activations of " + std::to_string(d.options.activation_bytes) + "\n";
    line("prefill", grouped(c.prefill_flops() / n) + " FLOPs per token, of them attention " +
                        grouped(c.prefill_attention / n) + "; " + rounded(c.prefill_intensity()) + " FLOPs per byte");
    if (c.head_matrix) {
      line("decode", grouped(c.decode_flops()) + " FLOPs per token, of them attention " + grouped(c.decode_attention) +
                         "; " + rounded(c.decode_intensity()) + " FLOPs per byte");
      line("training", grouped(c.training_flops() / n) + " FLOPs per token: three times a forward");
      line("KV cache", grouped(c.kv_bytes_per_token) + " bytes per token; " + grouped(c.kv_bytes_held) +
                           " at full context" +
                           (c.ring_layers ? " (" + std::to_string(c.ring_layers) + " layers keep a ring)" : ""));
    }
    if (c.source_kv_bytes_per_token)
      line("source", grouped(2. * static_cast<double>(c.source_matrices)) + " FLOPs and " +
                         grouped(c.source_kv_bytes_per_token) + " bytes of keys and values per token of the encoder");
    line("weights", grouped(c.weight_bytes) + " bytes read per pass");
    line("activations", grouped(c.pass_memory) + " bytes in a pass of " + grouped(std::int64_t{c.pass_tokens}) +
                            " tokens; " + grouped(c.training_memory) + " to train on a sequence");
  }
  return text +
         "  FLOPs of a token: 2 x elements of the matrices it passes + 4 x q_width x keys, over the layers; the head\n"
         "  once per prompt and for each decoded token. Bytes: weights + keys and values.\n";
}

inline std::string plan_text(const Description& d) {
  std::string text = "Operations of a pass, in order; one line is one call\n";
  for (const PlannedStep& step : d.plan) {
    text += "  " + step.stack + step.what +
            (step.layers.empty() ? "" : (step.layers.size() > 1 ? "s " : " ") + layer_ranges(step.layers)) + "\n";
    for (const PlannedOperation& o : step.operations) {
      text += "    " + padded(o.operation, 14);
      if (o.in) text += std::to_string(o.in) + " -> " + std::to_string(o.out) + "  ";
      text += joined(o.reads, " ") + (o.reads.empty() || o.does.empty() ? "" : ": ") + joined(o.does, "; ") + "\n";
    }
  }
  return text;
}

inline std::string ratios_text(const Description& d) {
  std::string text = "Beside published models\n";
  const auto number = [](double value) { return value >= 1000 ? grouped(value) : rounded(value); };
  for (const Ratio& r : d.ratios)
    text += "  " + padded(r.name, 36) + padded(number(r.value), 9) + (r.common() ? "in " : "NOT in ") + number(r.low) +
            " to " + number(r.high) + ": " + r.usual + "\n";
  return text;
}

inline std::string text_of(const Description& d) {
  std::string text = d.name + ": " + grouped(d.parameters) + " parameters\n\n" + d.alias + "\n" + parameters_text(d) +
                     "\n" + costs_text(d) + "\n" + plan_text(d) + "\n" + ratios_text(d);
  if (d.remarks.empty()) return text;
  text += "\nRemarks\n";
  for (const std::string& remark : d.remarks) text += "  " + remark + "\n";
  return text;
}

inline void json_of(JsonText& to, const ParameterGroup& g) {
  to.begin_object().field("name", g.name).key("layers").begin_array();
  for (const int layer : g.layers) to.value(layer);
  to.end_array().key("shape").begin_array().value(g.rows);
  if (g.columns > 1) to.value(g.columns);
  to.end_array().field("count", g.count()).field("matrix", g.matrix).field("decays", g.decays).end_object();
}
inline void json_of(JsonText& to, const NamedCosts& named) {
  const StackCosts& c = named.costs;
  to.begin_object()
      .field("stack", named.stack)
      .field("context", c.context)
      .field("layer_matrices", c.layer_matrices)
      .field("head_matrix", c.head_matrix)
      .field("source_matrices", c.source_matrices)
      .field("prefill_flops", c.prefill_flops())
      .field("prefill_attention_flops", c.prefill_attention)
      .field("decode_flops", c.decode_flops())
      .field("decode_attention_flops", c.decode_attention)
      .field("training_flops", c.training_flops())
      .field("weight_bytes", c.weight_bytes)
      .field("kv_bytes_per_token", c.kv_bytes_per_token)
      .field("kv_bytes_held", c.kv_bytes_held)
      .field("kv_bytes_read", c.kv_bytes_read)
      .field("ring_layers", c.ring_layers)
      .field("source_kv_bytes_per_token", c.source_kv_bytes_per_token)
      .field("pass_tokens", c.pass_tokens)
      .field("pass_memory", c.pass_memory)
      .field("training_memory", c.training_memory)
      .field("prefill_intensity", c.prefill_intensity())
      .field("decode_intensity", c.decode_intensity())
      .end_object();
}
inline void json_of(JsonText& to, const std::vector<std::string>& texts) {
  to.begin_array();
  for (const std::string& text : texts) to.value(text);
  to.end_array();
}
inline void json_of(JsonText& to, const PlannedStep& step) {
  to.begin_object().field("stack", step.stack).field("what", step.what).key("layers").begin_array();
  for (const int layer : step.layers) to.value(layer);
  to.end_array().key("operations").begin_array();
  for (const PlannedOperation& o : step.operations) {
    to.begin_object().field("operation", o.operation).key("reads");
    json_of(to, o.reads);
    to.key("does");
    json_of(to, o.does);
    if (o.in) to.field("in", o.in).field("out", o.out);
    to.end_object();
  }
  to.end_array().end_object();
}
inline void json_of(JsonText& to, const Ratio& r) {
  to.begin_object()
      .field("name", r.name)
      .field("value", r.value)
      .field("low", r.low)
      .field("high", r.high)
      .field("usual", r.usual)
      .field("common", r.common())
      .end_object();
}
template <class T>
void json_list(JsonText& to, std::string_view key, const std::vector<T>& entries) {
  to.key(key).begin_array();
  for (const T& entry : entries) json_of(to, entry);
  to.end_array();
}

inline std::string json_of(const Description& d) {
  JsonText to;
  to.begin_object().field("name", d.name).field("alias", d.alias).field("parameters", d.parameters);
  json_list(to, "tensors", d.groups);
  to.field("weight_bytes_per_element", d.options.weight_bytes)
      .field("cache_bytes_per_element", d.options.cache_bytes)
      .field("activation_bytes_per_element", d.options.activation_bytes);
  json_list(to, "costs", d.costs);
  json_list(to, "plan", d.plan);
  json_list(to, "ratios", d.ratios);
  to.key("remarks");
  json_of(to, d.remarks);
  to.end_object();
  return to.text();
}

}  // namespace detail

/// The alias of M, its parameter table, FLOPs and bytes by formula, the operations of a pass and what each does in one
/// call, its hyperparameters beside those of published models, and remarks on policies: as text.
template <class M>
std::string describe(const CostOptions& options = {}) {
  return detail::text_of(description_of<M>(options));
}
/// The same as one JSON object.
template <class M>
std::string describe_json(const CostOptions& options = {}) {
  return detail::json_of(description_of<M>(options));
}

}  // namespace typeformer
