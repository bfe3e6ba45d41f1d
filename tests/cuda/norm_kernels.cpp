// The norms' kernels, instantiated for the tests.
#include "arrays.hpp"
#include "norm.hpp"

namespace user {

/// A norm of a user's own: tanh(x / 2), no statistics (Zhu et al. 2025, arXiv:2503.10622, eq. 1).
struct DynamicTanh {
  float slope = 0.5f;
  typeformer::Gain gain = typeformer::Gain::weight;
  bool bias = true;
  static constexpr bool centered = false;
  TYPEFORMER_HD float scale(float) const { return 1.f; }
  TYPEFORMER_HD float normalize(float x, float) const { return tanhf(slope * x); }
  TYPEFORMER_HD float normalize_backward(float d, float x, float, float, float) const {
    const float y = tanhf(slope * x);
    return d * (1.f - y * y) * slope;
  }
};

}  // namespace user

namespace norms {
namespace {

using namespace typeformer;
using support::Array;
using support::Number;

template <class T>
NormArgs<T> forward_args(const Case& c) {
  NormArgs<T> a;
  a.rows = static_cast<std::int64_t>(c.rows);
  a.width = static_cast<int>(c.width);
  return a;
}

template <class T, class Form>
Results run_form(const Form& form, const Case& c, const Inputs& in) {
  cuda::Device on;
  if (c.grid_limit) on.set_grid_limit(c.grid_limit);
  Array<T> x(on, in.x.data, c.shift), residual(on, in.residual.data, c.shift), y(on, in.x.size(), c.shift);
  Array<T> dy(on, in.dy.data, c.shift), dx(on, in.dx_before.data, c.shift);
  Array<float> gain(on, in.gain.data, c.shift), bias(on, in.bias.data, c.shift), mean(on, c.rows), scale(on, c.rows);
  Array<float> dgain(on, in.gradient_before.data), dbias(on, in.gradient_before.data);
  Results results;

  auto a = forward_args<T>(c);
  a.x = x.data();
  a.y = y.data();
  a.residual = c.residual ? residual.data() : nullptr;
  a.gain = Form::has_gain ? gain.data() : nullptr;
  a.bias = Form::has_bias ? bias.data() : nullptr;
  a.mean = mean.data();
  a.scale = scale.data();
  norm_rows(on, form, a);
  results.y = y.download();

  Array<T> over(on, c.residual ? in.residual.data : in.x.data, c.shift);  // in place, nothing kept
  NormArgs<T> in_place = a;
  in_place.y = over.data();
  (c.residual ? in_place.residual : in_place.x) = in_place.y;
  in_place.mean = in_place.scale = nullptr;
  norm_rows(on, form, in_place);
  results.y_in_place = over.download();

  const bool over_dy = c.in_place && !c.accumulate;
  NormBackwardArgs<T> b;
  b.dy = dy.data();
  b.dx = over_dy ? dy.data() : dx.data();
  b.x = x.data();
  b.gain = a.gain;
  b.mean = Form::centered ? mean.data() : nullptr;
  b.scale = scale.data();
  b.dgain = c.gradients ? dgain.data() : nullptr;
  b.dbias = c.gradients ? dbias.data() : nullptr;
  b.rows = a.rows;
  b.width = a.width;
  b.accumulate = c.accumulate;
  norm_rows_backward(on, form, b);
  results.dx = over_dy ? dy.download() : dx.download();
  results.dgain = dgain.download();
  results.dbias = dbias.download();
  return results;
}

template <auto Policy>
Results run_policy(Number number, const Case& c, const Inputs& in) {
  constexpr auto form = norm_form(fixed<Policy>);
  return number == Number::f32 ? run_form<float>(form, c, in) : run_form<bf16>(form, c, in);
}

}  // namespace

Results run(const std::string& kind, Number number, const Case& c, const Inputs& in) {
  if (kind == "rms") return run_policy<RMSNorm{.eps = 1e-2f}>(number, c, in);
  if (kind == "rms_one_plus") return run_policy<RMSNorm{.eps = 1e-2f, .gain = Gain::one_plus}>(number, c, in);
  if (kind == "rms_plain") return run_policy<RMSNorm{.eps = 1e-2f, .gain = Gain::none}>(number, c, in);
  if (kind == "layer") return run_policy<LayerNorm{.eps = 1e-2f}>(number, c, in);
  if (kind == "layer_plain")
    return run_policy<LayerNorm{.eps = 1e-2f, .gain = Gain::none, .bias = false}>(number, c, in);
  if (kind == "none") return run_policy<NoNorm{}>(number, c, in);
  return run_policy<user::DynamicTanh{}>(number, c, in);
}

std::string complaint_without(const std::string& what) {
  cuda::Device on;
  auto a = forward_args<float>({.rows = 1, .width = 8});
  NormBackwardArgs<float> b;
  b.rows = 1;
  b.width = 8;
  float number = 0;
  a.x = a.y = &number;
  a.gain = a.bias = b.gain = b.mean = b.scale = &number;
  b.x = b.dy = b.dx = &number;
  const auto forward = [&] { norm_rows(on, norm_form(fixed<LayerNorm{.eps = 1e-2f}>), a); };
  const auto backward = [&] { norm_rows_backward(on, norm_form(fixed<LayerNorm{.eps = 1e-2f}>), b); };
  if (what == "arrays") return support::complaint_without(forward, a.x, a.y);
  if (what == "gain") return support::complaint_without(forward, a.gain);
  if (what == "bias") return support::complaint_without(forward, a.bias);
  if (what == "backward arrays") return support::complaint_without(backward, b.x, b.dy, b.dx);
  if (what == "backward gain") return support::complaint_without(backward, b.gain);
  if (what == "scale") return support::complaint_without(backward, b.scale);
  return support::complaint_without(backward, b.mean);
}
std::string complaint_about_rows() {
  cuda::Device on;
  NormArgs<float> a;
  a.rows = -1;
  a.width = 8;
  return support::complaint_of([&] { norm_rows(on, norm_form(fixed<RMSNorm{.eps = 1e-2f}>), a); });
}
std::string complaint_about_width(int width) {
  cuda::Device on;
  NormBackwardArgs<float> b;
  b.width = width;
  return support::complaint_of([&] { norm_rows_backward(on, norm_form(fixed<RMSNorm{.eps = 1e-2f}>), b); });
}
void run_nothing() {
  cuda::Device on;
  NormBackwardArgs<bf16> b;
  b.width = 8;
  norm_rows(on, norm_form(fixed<LayerNorm{.eps = 1e-2f}>), forward_args<bf16>({.rows = 0, .width = 8}));
  norm_rows_backward(on, norm_form(fixed<LayerNorm{.eps = 1e-2f}>), b);
  on.synchronize();
}

}  // namespace norms
