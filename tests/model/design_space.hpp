/// Random networks from all over the design space on the CPU device against the judge.
#pragma once
#include "model/golden_check.hpp"
#include "reference/networks.hpp"

namespace design_space {
using namespace typeformer;

inline reference::Network network(const std::string& name) {
  for (const auto& network : reference::networks())
    if (network.name == name) return network;
  throw Error("network", name, "the name of a network of the judge", "none of that name");
}

/// Every hidden state, logit, loss and gradient of composition M on the judge's network. The judge's own code in float
/// is the naive result.
template <class M>
void check(const reference::Network& network) {
  const auto parameters = reference::random_parameters(network.config, 11);
  const reference::LossOptions& options = network.options;
  harness::Inputs in = harness::inputs_of(network.batch);
  cpu::Device device(2);
  const auto model = harness::model_of<M>(device, parameters);
  const LossOptions ours{static_cast<float>(options.z_loss), static_cast<float>(options.label_smoothing)};
  const auto judge = harness::judged(network.config, parameters, network.batch, options);
  const auto naive = harness::judged<float>(network.config, parameters, network.batch, options);
  harness::count_deviations(judge, naive, harness::run(model, in, ours),
                            harness::longest_sum(network.config, network.batch), true);
}
template <class M>
void check(const std::string& name) {
  check<M>(network(name));
}

inline constexpr Dims dims{.vocab = 11, .d_model = 8, .n_layers = 2, .d_ff = 10, .max_seq = 16};
inline constexpr RMSNorm rms{.eps = 1e-2f};
inline constexpr LayerNorm layer_norm{.eps = 1e-2f};
using Small = Transformer<dims, rms, SwiGLU{}, RoPE{}, GQA{.heads = 4, .kv_heads = 2, .head_dim = 4}, PreNorm{}>;
/// GPT-2's block: LayerNorm, plain GELU, learned positions from row 2 on, biases everywhere, tied.
using GPT2 = Transformer<Dims{.vocab = 11, .d_model = 8, .n_layers = 2, .d_ff = 12, .max_seq = 7}, layer_norm,
                         GELUTanh{}, LearnedPositions{.offset = 2}, GQA{.heads = 4, .kv_heads = 4, .head_dim = 2},
                         PreNorm{}, Biases{}, TiedEmbeddings{}>;

}  // namespace design_space
