// The activations' kernels, instantiated for the tests.
#include "feedforward.hpp"

#include "arrays.hpp"

namespace user {

/// Activations of a user's own whose formulas know float only: x / (1 + |x|), alone and as a gate.
struct Softsign {
  static constexpr bool gated = false;
  TYPEFORMER_HD float operator()(float x) const { return x / (1.f + fabsf(x)); }
  TYPEFORMER_HD float derivative(float x) const { return 1.f / ((1.f + fabsf(x)) * (1.f + fabsf(x))); }
};
struct GatedSoftsign {
  float slope = 1.f;
  static constexpr bool gated = true;
  TYPEFORMER_HD float operator()(float gate, float up) const { return Softsign{}(slope * gate) * up; }
  TYPEFORMER_HD float derivative_gate(float gate, float up) const {
    return slope * Softsign{}.derivative(slope * gate) * up;
  }
  TYPEFORMER_HD float derivative_up(float gate, float) const { return Softsign{}(slope * gate); }
};

}  // namespace user

namespace feedforward {
namespace {

using namespace typeformer;
using support::Array;
using support::Number;

/// Rows `stride` elements apart, NaN between them.
std::vector<double> strided(const reference::Tensor<double>& x, std::size_t stride) {
  std::vector<double> result(x.rows() * stride, NAN);
  for (std::size_t r = 0; r < x.rows(); ++r)
    for (std::size_t i = 0; i < x.columns(); ++i) result[r * stride + i] = x(r, i);
  return result;
}

template <class T, class Activation>
Results run_form(const Activation& f, const Case& c, const Inputs& in) {
  cuda::Device on;
  if (c.grid_limit) on.set_grid_limit(c.grid_limit);
  const std::size_t dense = in.x.columns(), x_stride = c.x_stride ? c.x_stride : dense;
  const std::size_t dx_stride = c.in_place ? x_stride : c.dx_stride ? c.dx_stride : dense;
  Array<T> x(on, strided(in.x, x_stride), c.shift), y(on, c.rows * c.width, c.shift), dy(on, in.dy.data, c.shift);
  Array<T> dx(on, c.in_place ? 0 : c.rows * dx_stride, c.shift);
  ActivateArgs<T> a;
  a.y = y.data();
  a.x = x.data();
  a.rows = static_cast<std::int64_t>(c.rows);
  a.width = static_cast<int>(c.width);
  a.x_stride = static_cast<std::int64_t>(c.x_stride);
  activate(on, f, a);
  ActivateBackwardArgs<T> b;
  b.dx = c.in_place ? x.data() : dx.data();
  b.dy = dy.data();
  b.x = a.x;
  b.rows = a.rows;
  b.width = a.width;
  b.x_stride = a.x_stride;
  b.dx_stride = c.in_place ? a.x_stride : static_cast<std::int64_t>(c.dx_stride);
  activate_backward(on, f, b);
  return {y.download(), c.in_place ? x.download() : dx.download()};
}

template <class T>
Results run_far_type(const Case& c, const Inputs& in) {
  cuda::Device on;
  Array<T> x(on, in.x.data), y(on, in.dy.size()), dy(on, in.dy.data), dx(on, in.x.size());
  const auto width = static_cast<std::int64_t>(c.width), first = (std::int64_t{1} << 33) / width;
  ActivateArgs<T> a;
  a.y = support::before(y.data(), first * width);
  a.x = support::before(x.data(), first * width * 2);
  a.rows = first + static_cast<std::int64_t>(c.rows);
  a.width = static_cast<int>(width);
  a.x_stride = 2 * width;
  ActivateBackwardArgs<T> b;
  b.dx = support::before(dx.data(), first * width * 2);
  b.dy = support::before(dy.data(), first * width);
  b.x = a.x;
  b.rows = a.rows;
  b.width = a.width;
  b.x_stride = b.dx_stride = a.x_stride;
  const simt::LaunchShape shape(dim3(static_cast<unsigned>(c.rows)), dim3(32), 0, on.stream());
  constexpr int elements = cuda::detail::vector_elements<T>;
  cuda::detail::check(simt::launch(cuda::detail::activate<SwiGLU, elements, T>, shape, first, SwiGLU{}, a, 1), "test",
                      "launch");
  cuda::detail::check(simt::launch(cuda::detail::activate_backward<SwiGLU, elements, T>, shape, first, SwiGLU{}, b, 1),
                      "test", "launch");
  return {y.download(), dx.download()};
}

template <class Activation>
Results run_activation(const Activation& f, Number number, const Case& c, const Inputs& in) {
  return number == Number::f32 ? run_form<float>(f, c, in) : run_form<bf16>(f, c, in);
}

/// The activation, alone or as a gate.
template <class Activation>
Results run_kind(bool gated, Number number, const Case& c, const Inputs& in) {
  if (gated) return run_activation(Gated<Activation>{}, number, c, in);
  return run_activation(Activation{}, number, c, in);
}

}  // namespace

Results run(const std::string& kind, Number number, const Case& c, const Inputs& in) {
  const bool gated = kind.starts_with("gated_");
  const std::string name = gated ? kind.substr(6) : kind;
  if (name == "relu") return run_kind<ReLU>(gated, number, c, in);
  if (name == "relu2") return run_kind<SquaredReLU>(gated, number, c, in);
  if (name == "gelu_erf") return run_kind<GELU>(gated, number, c, in);
  if (name == "gelu_tanh") return run_kind<GELUTanh>(gated, number, c, in);
  if (name == "sigmoid") return run_kind<Sigmoid>(gated, number, c, in);
  if (name == "silu") return run_kind<SiLU>(gated, number, c, in);
  if (name == "quick_gelu") return run_kind<QuickGELU>(gated, number, c, in);
  if (name == "elu") return run_kind<ELU>(gated, number, c, in);
  if (name == "selu") return run_kind<SELU>(gated, number, c, in);
  if (name == "identity") return run_kind<Identity>(gated, number, c, in);
  if (gated) return run_activation(user::GatedSoftsign{.slope = 1.5f}, number, c, in);
  return run_activation(user::Softsign{}, number, c, in);
}

Results run_far(Number number, const Case& c, const Inputs& in) {
  return number == Number::f32 ? run_far_type<float>(c, in) : run_far_type<bf16>(c, in);
}

std::string complaint(const std::string& what) {
  cuda::Device on;
  float number = 0;
  ActivateArgs<float> a;
  a.rows = what == "rows" ? -1 : 2;
  a.width = what == "width" ? 0 : 4;
  a.x_stride = what == "stride" ? 7 : 0;
  if (what == "in place" || what == "null backward" || what == "backward rows") {
    ActivateBackwardArgs<float> b;
    b.rows = what == "backward rows" ? -1 : 2;
    b.width = 4;
    b.x = b.dy = b.dx = &number;
    b.dx_stride = 16;
    if (what == "null backward")
      return support::complaint_without([&] { activate_backward(on, SwiGLU{}, b); }, b.x, b.dy, b.dx);
    return support::complaint_of([&] { activate_backward(on, SwiGLU{}, b); });
  }
  if (what == "null") return support::complaint_without([&] { activate(on, SwiGLU{}, a); }, a.x, a.y);
  return support::complaint_of([&] { activate(on, SwiGLU{}, a); });
}

void run_nothing() {
  cuda::Device on;
  ActivateArgs<bf16> a;
  ActivateBackwardArgs<bf16> b;
  a.width = b.width = 8;
  activate(on, SwiGLU{}, a);
  activate_backward(on, SwiGLU{}, b);
  on.synchronize();
}

}  // namespace feedforward
