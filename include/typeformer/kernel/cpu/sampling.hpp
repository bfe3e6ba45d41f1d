/// The next token of rows of logits, on the CPU.
#pragma once
#include "typeformer/kernel/contract.hpp"
#include "typeformer/kernel/cpu/device.hpp"
#include "typeformer/kernel/token_choice.hpp"

namespace typeformer::inline TYPEFORMER_ABI::cpu {

/// ids[r] = the token that rules[r] chooses from logits[r], or a NoToken; see SampleArgs.
inline void sample_rows(Device& on, const SampleArgs& a) {
  on.parallel(a.rows, 1, [&](std::int64_t first, std::int64_t last) {
    typeformer::detail::TeamOfOne team;
    for (auto row = first; row < last; ++row)
      a.ids[row] = typeformer::detail::choose_token(team, a.logits + row * a.vocab, a.vocab, a.rules[row]);
  });
}

}  // namespace typeformer::inline TYPEFORMER_ABI::cpu
