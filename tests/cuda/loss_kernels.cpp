// The kernels of logits and loss, instantiated for the tests.
#include "loss.hpp"

#include <span>

#include "arrays.hpp"

namespace loss {
namespace {

using namespace typeformer;
using support::Array;
using support::Number;

template <class T>
Results run_type(const Case& c, const Inputs& in) {
  cuda::Device on;
  if (c.grid_limit) on.set_grid_limit(c.grid_limit);
  Array<T> logits(on, in.logits.data, c.shift), once(on, in.logits.data, c.shift);
  Array<float> loss(on, c.rows), alone(on, c.rows);
  Buffer<cuda::Device, std::int32_t> labels(on, std::span<const std::int32_t>(in.labels));
  CrossEntropyArgs<T> a;
  a.logits = logits.data();
  a.labels = labels.data();
  a.loss = loss.data();
  a.rows = static_cast<std::int64_t>(c.rows);
  a.vocab = static_cast<int>(c.vocab);
  a.factor = c.factor;
  a.cap = c.cap;
  a.z_loss = c.z_loss;
  a.smoothing = c.smoothing;
  a.gradient_scale = c.gradient_scale;
  a.gradient = true;
  cross_entropy(on, a);
  a.logits = once.data();
  a.loss = alone.data();
  a.gradient = false;
  cross_entropy(on, a);
  return {loss.download(), logits.download(), alone.download(), once.download()};
}

template <class T>
Results run_far_type(const Case& c, const Inputs& in) {
  cuda::Device on;
  Array<T> logits(on, in.logits.data);
  Array<float> loss(on, c.rows);
  Buffer<cuda::Device, std::int32_t> labels(on, std::span<const std::int32_t>(in.labels));
  const auto vocab = static_cast<std::int64_t>(c.vocab), first = (std::int64_t{1} << 33) / vocab;
  CrossEntropyArgs<T> a;
  a.logits = support::before(logits.data(), first * vocab);
  a.labels = support::before(labels.data(), first);
  a.loss = support::before(loss.data(), first);
  a.rows = first + static_cast<std::int64_t>(c.rows);
  a.vocab = static_cast<int>(vocab);
  a.gradient = true;
  const simt::LaunchShape shape(dim3(static_cast<unsigned>(c.rows)), dim3(64), 0, on.stream());
  cuda::detail::check(simt::launch(cuda::detail::cross_entropy<T>, shape, first, a), "test", "launch");
  return {loss.download(), logits.download(), {}, {}};
}

}  // namespace

Results run_far(Number number, const Case& c, const Inputs& in) {
  return number == Number::f32 ? run_far_type<float>(c, in) : run_far_type<bf16>(c, in);
}

Results run(Number number, const Case& c, const Inputs& in) {
  return number == Number::f32 ? run_type<float>(c, in) : run_type<bf16>(c, in);
}

std::vector<double> shape_logits(const Case& c, const std::vector<double>& logits) {
  cuda::Device on;
  if (c.grid_limit) on.set_grid_limit(c.grid_limit);
  Array<float> y(on, logits, c.shift);
  shape_logits(on, ShapeLogitsArgs{y.data(), static_cast<std::int64_t>(logits.size()), c.factor, c.cap});
  return y.download();
}

std::string complaint(const std::string& what) {
  cuda::Device on;
  if (what == "shape") return support::complaint_of([&] { shape_logits(on, {nullptr, 3, 2.f, 0.f}); });
  if (what == "count") return support::complaint_of([&] { shape_logits(on, {nullptr, -3, 2.f, 0.f}); });
  CrossEntropyArgs<float> a;
  a.rows = what == "rows" ? -1 : 1;
  a.vocab = what == "vocab" ? 0 : 3;
  if (what == "null") return support::complaint_without([&] { cross_entropy(on, a); }, a.logits, a.labels, a.loss);
  return support::complaint_of([&] { cross_entropy(on, a); });
}

void run_nothing() {
  cuda::Device on;
  CrossEntropyArgs<bf16> a;
  a.vocab = 8;
  cross_entropy(on, a);
  shape_logits(on, {nullptr, 0, 2.f, 0.f});
  on.synchronize();
}

}  // namespace loss
