// What the kernels do at the limits of grids and of 32 bits.
#include "limits.hpp"

#include "arrays.hpp"
#if !defined(__CUDACC__)
#include "typeformer/simt/streams.hpp"
#endif

namespace limits {
namespace {

using namespace typeformer;
using support::Array;
using support::before;
using support::complaint_of;

using RmsForm = NormForm<RMSNorm, Gain::weight, false>;
constexpr RmsForm rms = norm_form(fixed<RMSNorm{.eps = 1e-2f}>);
constexpr int width = 4;

struct Here {
#if !defined(__CUDACC__)
  simt::DeviceWork readable;  // many small kernels: hiding memory from the host between them takes longer than they run
#endif
  cuda::Device on;
};

struct NormArrays {
  NormArrays(cuda::Device& on, const std::vector<double>& input, const std::vector<double>& gradient, std::int64_t rows)
      : x(on, input), dy(on, gradient), y(on, input.size()), dx(on, gradient.size()),
        gain(on, std::vector<double>{1, -2, .5, 3}), scale(on, static_cast<std::size_t>(rows)) {}
  Array<float> x, dy, y, dx, gain, scale;
};

/// Launches a kernel that makes a row of each block's warp, from row `first` on.
template <class Args>
void launch_from(cuda::Device& on, void (*kernel)(std::int64_t, RmsForm, Args), std::int64_t first, std::int64_t rows,
                 const Args& args) {
  const simt::LaunchShape shape(dim3(static_cast<unsigned>(rows)), dim3(32), 0, on.stream());
  cuda::detail::check(simt::launch(kernel, shape, first, rms, args), "test", "launch");
}

}  // namespace

Norm norm(const std::vector<double>& x, std::int64_t rows) {
  Here here;
  NormArrays arrays(here.on, x, {}, rows);
  NormArgs<float> a;
  a.x = arrays.x.data();
  a.y = arrays.y.data();
  a.gain = arrays.gain.data();
  a.rows = rows;
  a.width = width;
  norm_rows(here.on, rms, a);
  return {arrays.y.download(), {}};
}

Norm norm_far(const std::vector<double>& x, const std::vector<double>& dy, std::int64_t rows, std::int64_t first) {
  Here here;
  NormArrays arrays(here.on, x, dy, rows);
  NormArgs<float> a;
  a.x = before(arrays.x.data(), first * width);
  a.y = before(arrays.y.data(), first * width);
  a.gain = arrays.gain.data();
  a.scale = before(arrays.scale.data(), first);
  a.rows = first + rows;
  a.width = width;
  launch_from(here.on, cuda::detail::norm_rows<RmsForm, 4, float>, first, rows, a);
  NormBackwardArgs<float> b;
  b.dx = before(arrays.dx.data(), first * width);
  b.dy = before(arrays.dy.data(), first * width);
  b.x = a.x;
  b.gain = a.gain;
  b.scale = a.scale;
  b.rows = a.rows;
  b.width = width;
  launch_from(here.on, cuda::detail::norm_rows_backward<RmsForm, 4, float>, first, rows, b);
  return {arrays.y.download(), arrays.dx.download()};
}

Heads heads(const std::vector<double>& qkv, int count) {
  Here here;
  Array<float> rows(here.on, qkv), q(here.on, qkv.size() - 2), k(here.on, 1), v(here.on, 1), dqkv(here.on, qkv.size());
  HeadsBackwardArgs<float> b;
  HeadsArgs<float>& a = b.forward;
  a.qkv = rows.data();
  a.q = q.data();
  a.k = k.data();
  a.v = v.data();
  a.tokens = 1;
  a.heads = count;
  a.kv_heads = a.head_dim = 1;
  const Rotation<Pairs::halves> none{nullptr, 0, 1.f};
  prepare_heads(here.on, norm_form(fixed<NoNorm{}>), none, a);
  b.dqkv = dqkv.data();
  b.dq = a.q;
  b.dk = a.k;
  b.dv = a.v;
  prepare_heads_backward(here.on, norm_form(fixed<NoNorm{}>), none, b);
  return {q.download(), k.download(), v.download(), dqkv.download()};
}

AttentionResults attend(const Attention& problem, const std::vector<double>& v, const std::vector<double>& d_o) {
  Here here;
  constexpr int dim = 32;
  std::vector<Segment> list;
  for (std::size_t i = 0; i < problem.queries.size(); ++i) {
    Segment s;
    s.query_row = s.key_row = problem.first_row + static_cast<std::int64_t>(i);
    s.queries = problem.queries[i];
    s.keys = problem.keys[i];
    list.push_back(s);
  }
  const Buffer<cuda::Device, Segment> segments(here.on, std::span<const Segment>(list));
  const std::size_t rows = list.size() * static_cast<std::size_t>(problem.heads);
  Array<float> values(here.on, v), gradients(here.on, d_o), o(here.on, d_o.size()), lse(here.on, rows);
  Array<float> dq(here.on, d_o.size()), dk(here.on, v.size()), dv(here.on, v.size());
  const std::int64_t far = problem.first_row * dim, far_rows = problem.first_row * problem.heads;
  AttendBackwardArgs<float> b;
  AttendArgs<float>& a = b.forward;
  a.q = before(gradients.data(), far * problem.heads);
  a.o = before(o.data(), far * problem.heads);
  a.k = a.v = before(values.data(), far);
  a.lse = before(lse.data(), far_rows);
  a.segments = segments.data();
  a.host_segments = list.data();
  a.segment_count = static_cast<int>(list.size());
  a.heads = problem.heads;
  a.kv_heads = 1;
  a.head_dim = dim;
  a.kv_stride = dim;
  const ScoreForm<false, NoBias> score{.1f, 0.f, {}};
  cuda::detail::check_attend("attend", a);
  cuda::detail::attend_at<dim>(here.on, Bidirectional{}, score, a);
  if (problem.backward) {
    b.dq = dq.data();
    b.dk = dk.data();
    b.dv = dv.data();
    b.d_o = gradients.data();
    cuda::detail::check_attend_backward("attend_backward", b);
    cuda::detail::attend_backward_at<dim>(here.on, Bidirectional{}, score, b);
  }
  return {o.download(), lse.download(), dq.download(), dk.download(), dv.download()};
}

std::string complaint(const std::string& what) {
  cuda::Device on;
  constexpr int wide = (1 << 29) + 1;
  if (what == "norm") {
    NormArgs<float> a;
    a.rows = 1;
    a.width = wide;
    return complaint_of([&] { norm_rows(on, rms, a); });
  }
  if (what == "embedding") {
    GatherArgs<float, float> a;
    a.tokens = 1;
    a.width = wide;
    return complaint_of([&] { gather_rows(on, a); });
  }
  if (what == "linear") {
    LinearArgs<float, float> a;
    a.rows = a.in = 1;
    a.out = wide;
    return complaint_of([&] { linear(on, a); });
  }
  if (what == "heads") {
    HeadsArgs<float> a;
    a.tokens = a.kv_heads = 1;
    a.heads = wide / 64;
    a.head_dim = 64;
    return complaint_of([&] {
      prepare_heads(on, norm_form(fixed<NoNorm{}>), Rotation<Pairs::halves>{nullptr, 0, 1.f}, a);
    });
  }
  Segment s;
  AttendArgs<float> a;
  a.segments = a.host_segments = &s;
  a.segment_count = 1;
  a.heads = what == "attention" ? wide / 32 + 1 : 1;
  a.kv_heads = 1;
  a.head_dim = 32;
  s.queries = 1;
  s.keys = what == "keys" ? (1 << 30) + 1 : 1;
  s.first_position = what == "position" ? 1 << 30 : 0;
  return complaint_of([&] { cuda::detail::check_attend("attend", a); });
}

}  // namespace limits
