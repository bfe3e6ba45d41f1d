/// From hidden states to logits and to the loss.
#pragma once
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "typeformer/model/stack.hpp"

namespace typeformer::inline TYPEFORMER_ABI {

/// Logits in host memory: one row of `vocab` numbers per position (or per sequence).
struct Logits {
  std::vector<float> values;
  int vocab = 0;
  std::int64_t rows() const { return vocab ? static_cast<std::int64_t>(values.size()) / vocab : 0; }
  std::span<const float> operator[](std::int64_t row) const {
    return std::span(values).subspan(static_cast<std::size_t>(row) * static_cast<std::size_t>(vocab),
                                     static_cast<std::size_t>(vocab));
  }
};

/// What the loss adds to cross-entropy: z_loss * (log Z)^2 (Chowdhery et al. 2022, section 5) and label smoothing
/// (Szegedy et al. 2015, section 7).
struct LossOptions {
  float z_loss = 0.f;
  float smoothing = 0.f;
};

namespace detail {

/// Rows of logits that a loss over `rows` rows makes at a time: so many numbers (Device::loss_logits), at least a row.
inline std::int64_t loss_chunk(std::int64_t rows, int vocab, std::int64_t numbers) {
  return std::clamp<std::int64_t>(numbers / vocab, 1, std::max<std::int64_t>(rows, 1));
}

/// The head of a stack S: its own matrix, or the embedding table.
template <class S, class Device, class W>
class Head {
 public:
  using A = activation_t<Device, W>;
  static constexpr int d_model = S::dims.d_model, vocab = S::dims.vocab;
  Head(Device& on, const W* matrix, const float* bias) : on_(on), matrix_(matrix), bias_(bias) {}

  /// logits = softcap(scale * (h W^T + bias)), [rows, vocab].
  void logits(float* y, const A* hidden, std::int64_t rows) {
    raw_logits(y, hidden, rows);
    if constexpr (S::logit_scale != 1.f || S::final_softcap != 0.f)
      shape_logits(on_,
                   ShapeLogitsArgs{.y = y, .count = rows * vocab, .factor = S::logit_scale, .cap = S::final_softcap});
  }

  /// The mean loss over labels >= 0 (0 when there are none). With `dhidden` also its gradients: of the hidden states
  /// (=), the head's matrix and bias (+=). Logits are made a few rows at a time, in the type of
  /// activations, and never kept whole.
  float loss(const A* hidden, const std::int32_t* labels, std::span<const std::int32_t> host_labels,
             const LossOptions& options, A* dhidden, float* dmatrix, float* dbias) {
    const auto rows = static_cast<std::int64_t>(host_labels.size());
    const auto counted =
        std::count_if(host_labels.begin(), host_labels.end(), [](std::int32_t label) { return label >= 0; });
    const std::int64_t chunk = loss_chunk(rows, vocab, Device::loss_logits);
    Buffer<Device, A> logits(on_, static_cast<std::size_t>(chunk * vocab));
    Buffer<Device, float> losses(on_, static_cast<std::size_t>(rows));
    for (std::int64_t first = 0; first < rows; first += chunk) {
      const std::int64_t count = std::min(chunk, rows - first);
      const A* h = hidden + first * d_model;
      raw_logits(logits.data(), h, count);
      // not CrossEntropyArgs<A>: nvcc writes A as a member of this type, whose name it can't write
      cross_entropy(on_, CrossEntropyArgs<activation_t<Device, W>>{
                             .logits = logits.data(),
                             .labels = labels + first,
                             .loss = losses.data() + first,
                             .rows = count,
                             .vocab = vocab,
                             .factor = S::logit_scale,
                             .cap = S::final_softcap,
                             .z_loss = options.z_loss,
                             .smoothing = options.smoothing,
                             .gradient_scale = counted ? 1.f / static_cast<float>(counted) : 0.f,
                             .gradient = dhidden != nullptr});
      if (dhidden)
        linear_backward(on_, LinearBackwardArgs<A, W>{.dx = dhidden + first * d_model,
                                                      .dw = dmatrix,
                                                      .dbias = dbias,
                                                      .dy = logits.data(),
                                                      .x = h,
                                                      .w = matrix_,
                                                      .rows = count,
                                                      .in = d_model,
                                                      .out = vocab});
    }
    std::vector<float> host(static_cast<std::size_t>(rows));
    losses.download(std::span<float>(host));
    double sum = 0;
    for (const float value : host) sum += value;
    return counted ? static_cast<float>(sum / static_cast<double>(counted)) : 0.f;
  }

 private:
  template <class Y>
  void raw_logits(Y* y, const A* hidden, std::int64_t rows) {
    linear(on_, LinearArgs<A, W, Y>{
                    .y = y, .x = hidden, .w = matrix_, .bias = bias_, .rows = rows, .in = d_model, .out = vocab});
  }
  Device& on_;
  const W* matrix_;
  const float* bias_;
};

/// Throws Error unless there is one label per token, each below the vocabulary (negative ones are ignored).
inline void check_labels(std::string_view operation, std::span<const std::int32_t> labels, std::size_t tokens,
                         int vocab, const LossOptions& options) {
  if (!(options.z_loss >= 0.f) || std::isinf(options.z_loss))
    throw Error(operation, "z_loss", "a finite number of 0 or more", std::to_string(options.z_loss));
  if (!(options.smoothing >= 0.f && options.smoothing < 1.f))
    throw Error(operation, "smoothing", "from 0 to below 1", std::to_string(options.smoothing));
  if (labels.size() != tokens)
    throw Error(operation, "labels", std::to_string(tokens) + " labels, one per token", std::to_string(labels.size()));
  for (const std::int32_t label : labels)
    if (label >= vocab)
      throw Error(operation, "labels", "labels below " + std::to_string(vocab), std::to_string(label));
}

}  // namespace detail
}  // namespace typeformer
