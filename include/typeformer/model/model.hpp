/// A composition with weights on a device.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "typeformer/core/random.hpp"
#include "typeformer/kernel/activation_type.hpp"
#include "typeformer/model/arena.hpp"
#include "typeformer/model/tables.hpp"

namespace typeformer::inline TYPEFORMER_ABI {

/// The weights of composition M, in the memory of a Device, matrices stored as Weight. All weights are zero at first:
/// load (io.hpp) or initialize them. The device must outlive the model. Many threads may run one const model at a time,
/// each with a state of its own, when the device serves many (cpu::Device does; a cuda::Device serves one).
template <class M, class Device_, Storage Weight_ = float>
class Model {
 public:
  using Architecture = M;
  using Device = Device_;
  using Weight = Weight_;
  using Activation = activation_t<Device, Weight>;  ///< the type of activations, keys and values

  explicit Model(Device& on) : on_(&on), weights_(on) {
    if constexpr (EncoderDecoderComposition<M>) {
      make_tables<typename M::Encoder>(encoder_tables_, encoder_position_rows_);
      make_tables<typename M::Decoder>(tables_, position_rows_);
    } else {
      make_tables<M>(tables_, position_rows_);
    }
  }

  Device& device() const { return *on_; }
  ParameterArena<M, Device, Weight>& weights() { return weights_; }
  const ParameterArena<M, Device, Weight>& weights() const { return weights_; }

  /// The tables of the kinds of layers, of the decoder or only stack.
  const std::vector<PositionTables<Device>>& tables() const { return tables_; }
  const std::vector<PositionTables<Device>>& encoder_tables() const { return encoder_tables_; }
  /// [max_seq, d_model] for positions by formula, else empty; of the decoder or only stack.
  const Buffer<Device, float>& position_rows() const { return position_rows_; }
  const Buffer<Device, float>& encoder_position_rows() const { return encoder_position_rows_; }

 private:
  template <class Stack>
  void make_tables(std::vector<PositionTables<Device>>& tables, Buffer<Device, float>& position_rows) {
    detail::for_each_kind<Stack>([&]<class L, int>() { tables.push_back(detail::position_tables<L>(*on_)); });
    position_rows = detail::formula_rows<Stack>(*on_);
  }
  Device* on_;
  ParameterArena<M, Device, Weight> weights_;
  std::vector<PositionTables<Device>> tables_, encoder_tables_;
  Buffer<Device, float> position_rows_, encoder_position_rows_;
};

/// Sets every weight to its initializer's values (see Initializer); equal seeds give equal weights on every device.
template <class M, class Device, Storage W>
void initialize(Model<M, Device, W>& model, std::uint64_t seed) {
  int layers = 0;
  for (const Parameter& p : parameters<M>) layers = std::max(layers, p.layer + 1);
  std::uint64_t stream = seed;
  for (const Parameter& p : parameters<M>) {
    std::vector<float> values(static_cast<std::size_t>(p.size()));
    stream = detail::random_bits(stream, 0);
    const float deviation =
        p.initializer == Initializer::residual ? .02f / std::sqrt(2.f * static_cast<float>(layers)) : .02f;
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (p.initializer == Initializer::ones)
        values[i] = 1.f;
      else if (p.initializer != Initializer::zeros)
        values[i] = deviation * static_cast<float>(detail::normal(stream, i));
    }
    model.weights().set(p, values);
  }
}

}  // namespace typeformer
