// Attention on floats.
#include "attention_run.hpp"

namespace attention {

Results run_f32(const Problem& p, const Inputs& in) { return run_number<float>(p, in); }

}  // namespace attention
