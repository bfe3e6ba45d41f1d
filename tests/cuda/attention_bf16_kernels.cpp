// Attention on bf16, and the number types' common entry.
#include "attention_run.hpp"

namespace attention {

Results run_bf16(const Problem& p, const Inputs& in) { return run_number<typeformer::bf16>(p, in); }

Results run(support::Number number, const Problem& p, const Inputs& in) {
  return number == support::Number::f32 ? run_f32(p, in) : run_bf16(p, in);
}

}  // namespace attention
