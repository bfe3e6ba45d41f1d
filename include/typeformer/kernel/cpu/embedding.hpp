/// Rows of a table for token ids, and their gradient, on the CPU.
#pragma once
#include "typeformer/kernel/contract.hpp"
#include "typeformer/kernel/cpu/device.hpp"
#include "typeformer/kernel/cpu/lanes.hpp"

namespace typeformer::inline TYPEFORMER_ABI::cpu {

/// y[t] = scale * table[index[t] + offset] (+=: accumulate); see GatherArgs.
template <class W>
void gather_rows(Device& on, const GatherArgs<float, W>& a) {
  on.parallel(a.tokens, 16, [&](std::int64_t first, std::int64_t last) {
    for (auto token = first; token < last; ++token) {
      const W* from = a.table + (std::int64_t{a.index[token]} + a.offset) * a.width;
      float* y = a.y + token * a.width;
      for (int i = 0; i < a.width; ++i) {
        const float value = to_float(from[i]) * a.scale;
        y[i] = a.accumulate ? y[i] + value : value;
      }
    }
  });
}

/// dtable[index[t] + offset] += scale * dy[t], in the order of t; see GatherBackwardArgs.
inline void gather_rows_backward(Device& on, const GatherBackwardArgs<float>& a) {
  if (!a.dtable) return;
  on.parallel(a.width, 16, [&](std::int64_t first, std::int64_t last) {  // columns: tokens of one row stay in order
    for (std::int64_t token = 0; token < a.tokens; ++token)
      detail::add_scaled(a.dtable + (std::int64_t{a.index[token]} + a.offset) * a.width + first, a.scale,
                         a.dy + token * a.width + first, static_cast<int>(last - first));
  });
}

}  // namespace typeformer::inline TYPEFORMER_ABI::cpu
