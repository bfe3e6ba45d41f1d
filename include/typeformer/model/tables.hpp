/// What a composition's position policies need as tables on the device: RoPE's frequencies, rows of a score bias,
/// sinusoids.
#pragma once
#include <cstdint>
#include <vector>

#include "typeformer/kernel/buffer.hpp"
#include "typeformer/kernel/contract.hpp"
#include "typeformer/model/layers.hpp"

namespace typeformer::inline TYPEFORMER_ABI {

/// The tables of one kind of layer; empty where its position policy needs none.
template <class Device>
struct PositionTables {
  Buffer<Device, float> frequencies;       ///< [rotary width / 2]
  Buffer<Device, std::int32_t> bias_rows;  ///< [2 reach + 1]
};

namespace detail {

template <class L, class Device>
PositionTables<Device> position_tables(Device& on) {
  PositionTables<Device> tables;
  constexpr auto position = L::position;
  using Policy = policy_t<L::position>;
  if constexpr (RotaryPosition<Policy>) {
    const int width = position.rotary_width(L::head_dim);
    std::vector<float> frequencies;
    for (int pair = 0; pair < width / 2; ++pair)
      frequencies.push_back(static_cast<float>(position.frequency(pair, width)));
    tables.frequencies = Buffer<Device, float>(on, frequencies);
  } else if constexpr (TableBias<Policy>) {
    std::vector<std::int32_t> rows;
    for (int relative = -position.reach(); relative <= position.reach(); ++relative)
      rows.push_back(position.row(relative));
    tables.bias_rows = Buffer<Device, std::int32_t>(on, rows);
  }
  return tables;
}

/// The position embedding of a formula, one row per position.
template <class M, class Device>
Buffer<Device, float> formula_rows(Device& on) {
  if constexpr (FormulaPosition<policy_t<M::position>>) {
    std::vector<float> rows;
    constexpr auto position = M::position;
    for (int p = 0; p < M::dims.max_seq; ++p)
      for (int channel = 0; channel < M::dims.d_model; ++channel)
        rows.push_back(position.embedding(p, channel, M::dims.d_model));
    return Buffer<Device, float>(on, rows);
  } else {
    return {};
  }
}

/// The kernel form of a layer's rotation.
template <class L, class Device>
auto rotation(const PositionTables<Device>& tables) {
  constexpr auto position = L::position;
  if constexpr (RotaryPosition<policy_t<L::position>>)
    return Rotation<position.pairs>{tables.frequencies.data(), position.rotary_width(L::head_dim),
                                    position.amplitude()};
  else
    return Rotation<Pairs::halves>{};
}

/// The kernel form of a layer's score; `table`: the trained bias of the stack, or null.
template <class L, class Device>
auto score_form(const PositionTables<Device>& tables, const float* table) {
  constexpr auto position = L::position;
  constexpr bool softcap = L::attention.softcap > 0.f;
  if constexpr (FormulaBias<policy_t<L::position>>) {
    using Bias = FormulaBiasForm<policy_t<L::position>>;
    return ScoreForm<softcap, Bias>{L::score_scale, L::attention.softcap, Bias{position}};
  } else if constexpr (TableBias<policy_t<L::position>>) {
    return ScoreForm<softcap, TableBiasForm>{
        L::score_scale, L::attention.softcap, {table, tables.bias_rows.data(), position.reach()}};
  } else {
    return ScoreForm<softcap, NoBias>{L::score_scale, L::attention.softcap, {}};
  }
}

/// The kernel form of cross-attention's score: the same scale and cap, no position.
template <class L>
auto cross_score_form() {
  return ScoreForm<(L::attention.softcap > 0.f), NoBias>{L::score_scale, L::attention.softcap, {}};
}

}  // namespace detail
}  // namespace typeformer
