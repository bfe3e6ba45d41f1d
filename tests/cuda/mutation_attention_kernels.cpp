// Attention for mutate_logic.py: few forms of the kernels, which compile soon, but with every branch of them.
#include "attention_run.hpp"

namespace attention {
namespace {

template <class T>
Results run_few(const Problem& p, const Inputs& in) {
  using namespace typeformer;
  cuda::Device on;
  if (p.grid_limit) on.set_grid_limit(p.grid_limit);
  Array<float> table(on, in.table);
  const Buffer<cuda::Device, std::int32_t> rows(on, std::span<const std::int32_t>(p.table_rows));
  const TableBiasForm bias{table.data(), rows.data(), static_cast<int>(p.table_rows.size() / 2)};
  if (p.bias == "table") return run_form<T, 32>(on, Bidirectional{}, score_of<false>(p, bias), p, in);
  if (p.mask == "window") return run_form<T, 32>(on, SlidingWindow{p.window}, score_of<true>(p, NoBias{}), p, in);
  return run_form<T, 32>(on, Causal{}, score_of<false>(p, NoBias{}), p, in);
}

}  // namespace

Results run(support::Number number, const Problem& p, const Inputs& in) {
  return number == support::Number::f32 ? run_few<float>(p, in) : run_few<typeformer::bf16>(p, in);
}

std::string complaint(const std::string& what) {
  using namespace typeformer;
  Segment segments[2];
  segments[0].queries = segments[1].queries = segments[1].keys = 1;
  segments[0].keys = 4;
  segments[1].key_row = 4;
  bf16 row;
  float number;
  AttendBackwardArgs<bf16> b;
  AttendArgs<bf16>& a = b.forward;
  b.d_o = b.dq = b.dk = b.dv = a.o = &row;
  a.q = a.k = a.v = &row;
  a.lse = &number;
  a.segments = a.host_segments = segments;
  a.segment_count = 2;
  a.heads = 2;
  a.kv_heads = 1;
  a.head_dim = 8;
  const auto is = [&](const char* name) { return what == name; };
  if (is("heads")) a.heads = 0;
  if (is("kv_heads")) a.kv_heads = 0;
  if (is("groups")) a.kv_heads = 2, a.heads = 3;
  if (is("head_dim")) a.head_dim = 0;
  if (is("smallest head_dim")) a.head_dim = 1;
  if (is("large head_dim")) a.head_dim = 257;
  if (is("segments")) a.segments = nullptr;
  if (is("host_segments")) a.host_segments = nullptr;
  if (is("segment_count")) a.segment_count = -1;
  if (is("no segments")) a.segments = a.host_segments = nullptr, a.segment_count = 0;
  if (is("kv_stride")) a.kv_stride = 7;
  if (is("queries")) segments[1].queries = -1;
  if (is("keys")) segments[1].keys = -1;
  if (is("query_row")) segments[1].query_row = -1;
  if (is("key_row")) segments[1].key_row = -1;
  if (is("first_position")) segments[1].first_position = -1;
  if (is("negative ring")) segments[1].ring = -1;
  if (is("longest")) segments[1].keys = 1 << 30, segments[1].first_position = (1 << 30) - 1;
  if (is("too many keys")) segments[1].keys = (1 << 30) + 1;
  if (is("too far")) segments[1].first_position = 1 << 30;
  if (is("wide")) a.heads = a.kv_heads = 1 << 27;
  if (is("q")) a.q = nullptr;
  if (is("q of the first")) a.q = nullptr, segments[1].queries = 0;
  if (is("o")) a.o = nullptr;
  if (is("k")) a.k = nullptr;
  if (is("v")) a.v = nullptr;
  if (is("k of one key")) a.k = nullptr, segments[0].keys = segments[1].keys = 1;
  if (is("k of the first")) a.k = nullptr, segments[1].keys = 0;
  if (is("keys alone")) a.k = a.v = nullptr, segments[0].queries = segments[1].queries = 0;
  if (is("nothing to query"))
    a.q = b.d_o = nullptr, a.o = b.dq = nullptr, a.lse = nullptr, segments[0].queries = segments[1].queries = 0;
  if (is("no keys")) a.k = a.v = nullptr, b.dk = b.dv = nullptr, segments[0].keys = segments[1].keys = 0;
  if (is("ring")) segments[0].ring = 4;
  if (is("dq")) b.dq = nullptr;
  if (is("d_o")) b.d_o = nullptr;
  if (is("lse")) a.lse = nullptr;
  if (is("dk")) b.dk = nullptr, segments[0].keys = 0;
  if (is("dv")) b.dv = nullptr;
  if (is("shared keys")) segments[1].key_row = 3;
  if (is("shared keys in disorder")) segments[0].key_row = 3, segments[1].key_row = 0, segments[1].keys = 4;
  if (is("disorder")) segments[0].key_row = 4, segments[1].key_row = 0, segments[1].keys = 4;
  if (is("no keys in between")) segments[0].keys = 0, segments[0].key_row = 6, segments[1].keys = 4;
  try {
    cuda::detail::check_attend("attend", a);
    cuda::detail::check_attend_backward("attend_backward", b);
  } catch (const Error& error) {
    const std::string text = error.what();
    return text.substr(0, text.find(": expected"));
  }
  return "none";
}

}  // namespace attention
