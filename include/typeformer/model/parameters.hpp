/// The parameter table of a composition: one constexpr list that checkpoints, optimizers and reports loop over.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "typeformer/model/layers.hpp"

namespace typeformer::inline TYPEFORMER_ABI {

/// Every tensor a stack may own. Which of them a composition has, and their shapes, is in parameters<M>.
enum class Tensor : std::uint8_t {
  token_embeddings,
  position_table,
  embedding_norm_weight,
  embedding_norm_bias,
  relative_bias,
  ln1_weight,
  ln1_bias,
  q_weight,
  k_weight,
  v_weight,
  q_bias,
  k_bias,
  v_bias,
  q_norm_weight,
  q_norm_bias,
  k_norm_weight,
  k_norm_bias,
  output_weight,
  output_bias,
  ln1_post_weight,
  ln1_post_bias,
  ln_cross_weight,
  ln_cross_bias,
  cross_q_weight,
  cross_k_weight,
  cross_v_weight,
  cross_q_bias,
  cross_k_bias,
  cross_v_bias,
  cross_output_weight,
  cross_output_bias,
  ln_cross_post_weight,
  ln_cross_post_bias,
  ln2_weight,
  ln2_bias,
  gate_weight,
  up_weight,
  gate_bias,
  up_bias,
  down_weight,
  down_bias,
  ln2_post_weight,
  ln2_post_bias,
  ln_final_weight,
  ln_final_bias,
  head_weight,
  head_bias,
  count
};

/// The bias of a norm whose weight is `norm_weight`: the two stand side by side in the list above.
constexpr Tensor bias_of(Tensor norm_weight) { return static_cast<Tensor>(static_cast<int>(norm_weight) + 1); }
static_assert(bias_of(Tensor::embedding_norm_weight) == Tensor::embedding_norm_bias &&
                  bias_of(Tensor::ln1_weight) == Tensor::ln1_bias &&
                  bias_of(Tensor::q_norm_weight) == Tensor::q_norm_bias &&
                  bias_of(Tensor::k_norm_weight) == Tensor::k_norm_bias &&
                  bias_of(Tensor::ln1_post_weight) == Tensor::ln1_post_bias &&
                  bias_of(Tensor::ln_cross_weight) == Tensor::ln_cross_bias &&
                  bias_of(Tensor::ln_cross_post_weight) == Tensor::ln_cross_post_bias &&
                  bias_of(Tensor::ln2_weight) == Tensor::ln2_bias &&
                  bias_of(Tensor::ln2_post_weight) == Tensor::ln2_post_bias &&
                  bias_of(Tensor::ln_final_weight) == Tensor::ln_final_bias,
              "a norm's bias must follow its weight in Tensor: bias_of counts on it. Keep them together.");

/// How a parameter starts: N(0, 0.02^2); the same over sqrt(2 n_layers), for what is added to the residual stream
/// (Radford et al. 2019, section 2.3); ones; zeros.
enum class Initializer : std::uint8_t { normal, residual, ones, zeros };

/// One entry of the table.
struct Parameter {
  Tensor tensor{};
  std::string_view stack;   ///< "", "encoder." or "decoder."
  int layer = -1;           ///< -1: of the stack
  std::string_view suffix;  ///< "attn.q_proj.weight"
  std::int64_t rows = 0;    ///< matrices [rows, columns] (out, in); vectors [rows], columns 1
  std::int64_t columns = 1;
  std::int64_t offset = 0;  ///< elements from the start of the matrices or of the vectors
  bool matrix = false;      ///< stored in the weight type; vectors are float
  bool decays = false;      ///< takes part in weight decay
  Initializer initializer = Initializer::normal;

  constexpr std::int64_t size() const { return rows * columns; }
  /// "decoder.layers.3.attn.q_proj.weight".
  std::string name() const {
    std::string text(stack);
    if (layer >= 0) text.append("layers.").append(std::to_string(layer)).append(".");
    return text.append(suffix);
  }
};

namespace detail {

/// Walks through the parameters of stacks in the order they lie in memory. Matrices that one product may read together
/// (q k v, gate up) follow each other without a gap; every other one begins at a multiple of `alignment` elements.
template <class Sink>
class ParameterWalk {
 public:
  static constexpr std::int64_t alignment = 32;
  constexpr explicit ParameterWalk(Sink& sink) : sink_(sink) {}

  template <class M>
  constexpr void stack(std::string_view name, bool own_embeddings) {
    stack_ = name;
    if (own_embeddings) embeddings<M>();
    positions<M>();
    if constexpr (!std::is_same_v<policy_t<M::embedding_norm>, NoNorm>)
      norm<M::embedding_norm>(Tensor::embedding_norm_weight, "embedding_norm.weight", "embedding_norm.bias",
                              M::dims.d_model);
    for (layer_ = 0; layer_ < M::dims.n_layers; ++layer_)
      with_layer<M>(layer_, [this]<class L, int>() { this->template block<L>(); });
    layer_ = -1;
    if constexpr (M::layout.final_norm)
      norm<M::norm>(Tensor::ln_final_weight, "ln_final.weight", "ln_final.bias", M::dims.d_model);
  }
  template <class M>
  constexpr void embeddings() {
    matrix(Tensor::token_embeddings, "token_embeddings.weight", M::dims.vocab, M::dims.d_model);
  }
  /// The head is the model's, beside the embeddings, whichever stack it ends.
  template <class M>
  constexpr void head() {
    stack_ = "";
    if constexpr (M::has_head && !M::tied)
      matrix(Tensor::head_weight, "lm_head.weight", M::dims.vocab, M::dims.d_model);
    if constexpr (M::has_head && M::biases.head)
      vector(Tensor::head_bias, "lm_head.bias", M::dims.vocab, Initializer::zeros);
  }
  constexpr std::int64_t matrices() const { return matrices_; }
  constexpr std::int64_t vectors() const { return vectors_; }
  constexpr std::int64_t elements() const { return elements_; }
  constexpr int count() const { return count_; }

 private:
  template <class M>
  constexpr void positions() {
    bool found = false;
    for_each_kind<M>([&]<class L, int>() {
      constexpr auto position = L::position;
      if (found) return;
      if constexpr (TablePosition<policy_t<L::position>>) {
        matrix(Tensor::position_table, position.table_name, position.table_rows(M::dims.max_seq), M::dims.d_model);
        found = true;
      } else if constexpr (TableBias<policy_t<L::position>>) {
        table(Tensor::relative_bias, position.table_name, position.table_rows(M::dims.max_seq), M::heads);
        found = true;
      }
    });
  }
  template <class L>
  constexpr void block() {
    constexpr int d = L::dims.d_model;
    if constexpr (L::layout.norm_input || L::layout.norm_sum)
      norm<L::norm>(Tensor::ln1_weight, "ln1.weight", "ln1.bias", d);
    projections(L::q_width, L::kv_width, d, L::biases.qkv);
    if constexpr (shares_input<L>) feed_forward_input<L>(true);
    qk_norms<L>();
    matrix(Tensor::output_weight, "attn.output_proj.weight", d, L::q_width, Initializer::residual);
    if constexpr (L::biases.output) vector(Tensor::output_bias, "attn.output_proj.bias", d, Initializer::zeros);
    if constexpr (L::layout.norm_output) norm<L::norm>(Tensor::ln1_post_weight, "ln1_post.weight", "ln1_post.bias", d);
    if constexpr (L::cross_attention) cross<L>();
    if constexpr ((L::layout.norm_input && !shares_input<L>) || L::layout.norm_sum)
      norm<L::norm>(Tensor::ln2_weight, "ln2.weight", "ln2.bias", d);
    if constexpr (!shares_input<L>) feed_forward_input<L>(false);
    matrix(Tensor::down_weight, "ffn.down_proj.weight", d, L::dims.d_ff, Initializer::residual);
    if constexpr (L::biases.feed_forward) vector(Tensor::down_bias, "ffn.down_proj.bias", d, Initializer::zeros);
    if constexpr (L::layout.norm_output) norm<L::norm>(Tensor::ln2_post_weight, "ln2_post.weight", "ln2_post.bias", d);
  }
  constexpr void projections(int q_width, int kv_width, int d, bool biased) {
    matrix(Tensor::q_weight, "attn.q_proj.weight", q_width, d);
    matrix(Tensor::k_weight, "attn.k_proj.weight", kv_width, d, Initializer::normal, true);
    matrix(Tensor::v_weight, "attn.v_proj.weight", kv_width, d, Initializer::normal, true);
    if (!biased) return;
    vector(Tensor::q_bias, "attn.q_proj.bias", q_width, Initializer::zeros);
    vector(Tensor::k_bias, "attn.k_proj.bias", kv_width, Initializer::zeros, true);
    vector(Tensor::v_bias, "attn.v_proj.bias", kv_width, Initializer::zeros, true);
  }
  template <class L>
  constexpr void qk_norms() {
    constexpr auto qk = L::qk_norm;
    constexpr bool shared = qk.width == QKWidth::head;
    norm<qk.norm>(Tensor::q_norm_weight, "attn.q_norm.weight", "attn.q_norm.bias", shared ? L::head_dim : L::q_width);
    norm<qk.norm>(Tensor::k_norm_weight, "attn.k_norm.weight", "attn.k_norm.bias", shared ? L::head_dim : L::kv_width);
  }
  template <class L>
  constexpr void cross() {
    constexpr int d = L::dims.d_model;
    if constexpr (L::layout.norm_input || L::layout.norm_sum)
      norm<L::norm>(Tensor::ln_cross_weight, "ln_cross.weight", "ln_cross.bias", d);
    matrix(Tensor::cross_q_weight, "cross.q_proj.weight", L::q_width, d);
    matrix(Tensor::cross_k_weight, "cross.k_proj.weight", L::kv_width, d);
    matrix(Tensor::cross_v_weight, "cross.v_proj.weight", L::kv_width, d, Initializer::normal, true);
    if constexpr (L::biases.qkv) {
      vector(Tensor::cross_q_bias, "cross.q_proj.bias", L::q_width, Initializer::zeros);
      vector(Tensor::cross_k_bias, "cross.k_proj.bias", L::kv_width, Initializer::zeros);
      vector(Tensor::cross_v_bias, "cross.v_proj.bias", L::kv_width, Initializer::zeros, true);
    }
    matrix(Tensor::cross_output_weight, "cross.output_proj.weight", d, L::q_width, Initializer::residual);
    if constexpr (L::biases.output) vector(Tensor::cross_output_bias, "cross.output_proj.bias", d, Initializer::zeros);
    if constexpr (L::layout.norm_output)
      norm<L::norm>(Tensor::ln_cross_post_weight, "ln_cross_post.weight", "ln_cross_post.bias", d);
  }
  template <class L>
  constexpr void feed_forward_input(bool after_qkv) {
    constexpr int d = L::dims.d_model, d_ff = L::dims.d_ff;
    constexpr bool gated = policy_t<L::activation>::gated;
    if constexpr (gated) matrix(Tensor::gate_weight, "ffn.gate_proj.weight", d_ff, d, Initializer::normal, after_qkv);
    matrix(Tensor::up_weight, "ffn.up_proj.weight", d_ff, d, Initializer::normal, gated || after_qkv);
    if constexpr (L::biases.feed_forward) {
      constexpr bool together = one_product<L>;
      if constexpr (gated) vector(Tensor::gate_bias, "ffn.gate_proj.bias", d_ff, Initializer::zeros, together);
      vector(Tensor::up_bias, "ffn.up_proj.bias", d_ff, Initializer::zeros, gated || together);
    }
  }
  template <auto Norm>
  constexpr void norm(Tensor weight, std::string_view weight_name, std::string_view bias_name, std::int64_t width) {
    if constexpr (Norm.gain != Gain::none)
      vector(weight, weight_name, width, Norm.gain == Gain::one_plus ? Initializer::zeros : Initializer::ones);
    if constexpr (Norm.bias) vector(bias_of(weight), bias_name, width, Initializer::zeros);
  }

  constexpr void matrix(Tensor tensor, std::string_view suffix, std::int64_t rows, std::int64_t columns,
                        Initializer initializer = Initializer::normal, bool follows = false) {
    if (!follows) matrices_ = aligned(matrices_);
    put({tensor, stack_, layer_, suffix, rows, columns, matrices_, true, true, initializer});
    matrices_ += rows * columns;
  }
  /// A matrix of numbers that kernels read as float.
  constexpr void table(Tensor tensor, std::string_view suffix, std::int64_t rows, std::int64_t columns) {
    vectors_ = aligned(vectors_);
    put({tensor, stack_, layer_, suffix, rows, columns, vectors_, false, false, Initializer::normal});
    vectors_ += rows * columns;
  }
  constexpr void vector(Tensor tensor, std::string_view suffix, std::int64_t size, Initializer initializer,
                        bool follows = false) {
    if (!follows) vectors_ = aligned(vectors_);
    put({tensor, stack_, layer_, suffix, size, 1, vectors_, false, false, initializer});
    vectors_ += size;
  }
  constexpr void put(const Parameter& parameter) {
    sink_(count_, parameter);
    elements_ += parameter.size();
    ++count_;
  }
  static constexpr std::int64_t aligned(std::int64_t offset) {
    return (offset + alignment - 1) / alignment * alignment;
  }

  Sink& sink_;
  std::string_view stack_;
  int layer_ = -1, count_ = 0;
  std::int64_t matrices_ = 0, vectors_ = 0, elements_ = 0;
};

/// Sends every parameter of M to sink(index, parameter); returns the walk with its totals.
template <class M, class Sink>
constexpr ParameterWalk<Sink> walk_parameters(Sink& sink) {
  ParameterWalk<Sink> walk(sink);
  if constexpr (EncoderDecoderComposition<M>) {
    walk.template embeddings<typename M::Decoder>();
    walk.template stack<typename M::Encoder>("encoder.", false);
    walk.template stack<typename M::Decoder>("decoder.", false);
    walk.template head<typename M::Decoder>();
  } else {
    walk.template stack<M>("", true);
    walk.template head<M>();
  }
  return walk;
}

struct IgnoreParameter {
  constexpr void operator()(int, const Parameter&) const {}
};
/// The totals of the table, without the table.
template <class M>
struct ParameterTotals {
  int count;
  std::int64_t elements, matrices, vectors;
};
template <class M>
inline constexpr ParameterTotals<M> parameter_totals = [] {
  IgnoreParameter ignore;
  const auto walk = walk_parameters<M>(ignore);
  return ParameterTotals<M>{walk.count(), walk.elements(), walk.matrices(), walk.vectors()};
}();

template <class M>
struct ParameterCount {
  static constexpr std::int64_t value = parameter_totals<M>.elements;
};

}  // namespace detail

/// The parameters of M in the order they lie in memory. A tied head is the embedding table and not listed again.
template <class M>
inline constexpr auto parameters = [] {
  std::array<Parameter, static_cast<std::size_t>(detail::parameter_totals<M>.count)> table{};
  auto fill = [&table](int index, const Parameter& parameter) { table[static_cast<std::size_t>(index)] = parameter; };
  detail::walk_parameters<M>(fill);
  return table;
}();

}  // namespace typeformer
