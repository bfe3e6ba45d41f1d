// Attention on bf16, and the number types' common entry.
#include "attention_run.hpp"

namespace attention {

Results run_bf16(const Problem& p, const Inputs& in) { return run_number<typeformer::bf16>(p, in); }

Results run(support::Number number, const Problem& p, const Inputs& in) {
  return number == support::Number::f32 ? run_f32(p, in) : run_bf16(p, in);
}

std::string complaint(const std::string& what) {
  using namespace typeformer;
  cuda::Device on;
  Array<bf16> rows(on, 64);
  Segment segments[2];
  segments[0].queries = segments[1].queries = 0;
  segments[0].keys = 4;
  segments[1].keys = 4;
  segments[1].key_row = what == "shared keys" ? 3 : 4;
  segments[0].ring = what == "ring" ? 4 : 0;
  AttendBackwardArgs<bf16> b;
  b.dk = b.dv = rows.data();
  AttendArgs<bf16>& a = b.forward;
  a.segments = a.host_segments = segments;
  a.segment_count = 2;
  a.heads = what == "heads" ? 3 : 2;
  a.kv_heads = what == "heads" ? 2 : 1;
  a.head_dim = what == "head_dim" ? 257 : 8;
  if (what == "null") segments[0].queries = 1;
  const ScoreForm<false, NoBias> score{};
  try {
    if (what == "ring" || what == "shared keys")
      attend_backward(on, Causal{}, score, b);
    else if (what == "head_dim of the type")
      attend(on, Causal{}, score, AttendArgsOf<bf16, 9>{a});
    else if (what == "head_dim of the type, backward")
      attend_backward(on, Causal{}, score, AttendBackwardArgsOf<bf16, 9>{b});
    else
      attend(on, Causal{}, score, a);
  } catch (const Error& error) {
    return error.what();
  }
  return "none";
}

}  // namespace attention
