// The kernels over arrays, instantiated for the tests.
#include "elementwise.hpp"

#include "arrays.hpp"

namespace elementwise {
namespace {

using namespace typeformer;
using support::Array;
using support::Number;

void limit(cuda::Device& on, const Case& c) {
  if (c.grid_limit) on.set_grid_limit(c.grid_limit);
}

template <class T>
Sums add_type(const Case& c, const std::vector<double>& a, const std::vector<double>& b) {
  cuda::Device on;
  limit(on, c);
  Array<T> first(on, a, c.shift), second(on, b, c.shift), y(on, a.size(), c.shift);
  AddArgs<T> args{y.data(), first.data(), second.data(), static_cast<std::int64_t>(a.size())};
  add(on, args);
  Sums sums{y.download(), {}, {}};
  Array<T> over_a(on, a, c.shift), over_b(on, b, c.shift);
  args.y = over_a.data();
  args.a = args.y;
  add(on, args);
  sums.over_a = over_a.download();
  args.y = over_b.data();
  args.a = first.data();
  args.b = args.y;
  add(on, args);
  sums.over_b = over_b.download();
  return sums;
}

}  // namespace

Sums add(Number number, const Case& c, const std::vector<double>& a, const std::vector<double>& b) {
  return number == Number::f32 ? add_type<float>(c, a, b) : add_type<bf16>(c, a, b);
}

Weights adamw(const Case& c, const Optimizer& optimizer, const Weights& before,
              const std::vector<std::vector<double>>& gradients) {
  cuda::Device on;
  limit(on, c);
  Array<float> weight(on, before.weight, c.shift), m(on, before.m, c.shift), v(on, before.v, c.shift);
  AdamWArgs a;
  a.weight = weight.data();
  a.m = m.data();
  a.v = v.data();
  a.count = static_cast<std::int64_t>(before.weight.size());
  a.learning_rate = optimizer.learning_rate;
  a.beta1 = optimizer.beta1;
  a.beta2 = optimizer.beta2;
  a.eps = optimizer.eps;
  a.decay = optimizer.decay;
  a.gradient_scale = optimizer.gradient_scale;
  for (std::size_t step = 0; step < gradients.size(); ++step) {
    Array<float> gradient(on, gradients[step], c.shift);
    a.gradient = gradient.data();
    a.step = static_cast<int>(step) + 1;
    adamw(on, a);
    on.synchronize();
  }
  return {weight.download(), m.download(), v.download()};
}

double sum_of_squares(const Case& c, const std::vector<double>& x) {
  cuda::Device on;
  limit(on, c);
  Array<float> array(on, x, c.shift);
  return sum_of_squares(on, array.data(), static_cast<std::int64_t>(x.size()));
}

std::vector<double> add_far(const std::vector<double>& a, const std::vector<double>& b) {
  cuda::Device on;
  Array<float> first(on, a), second(on, b), y(on, a.size());
  constexpr std::int64_t far = std::int64_t{1} << 33, block = cuda::detail::flat_threads * 4;
  const AddArgs<float> args{support::before(y.data(), far), support::before(first.data(), far),
                            support::before(second.data(), far), far + static_cast<std::int64_t>(a.size())};
  const auto blocks = static_cast<unsigned>((static_cast<std::int64_t>(a.size()) + block - 1) / block);
  const simt::LaunchShape shape(dim3(blocks), dim3(cuda::detail::flat_threads), 0, on.stream());
  const auto status = simt::launch(cuda::detail::add<4, float>, shape, far / block, std::int64_t{0}, args);
  cuda::detail::check(status, "test", "launch");
  return y.download();
}

std::string complaint(const std::string& what) {
  cuda::Device on;
  AdamWArgs a;
  a.count = 3;
  if (what == "step") a.step = 0;
  if (what == "adamw") return support::complaint_without([&] { adamw(on, a); }, a.weight, a.gradient, a.m, a.v);
  if (what == "adamw count") a.count = -1;
  if (what == "step" || what == "adamw count") return support::complaint_of([&] { adamw(on, a); });
  if (what == "sum" || what == "sum count")
    return support::complaint_of(
        [&] { sum_of_squares(on, static_cast<const float*>(nullptr), what == "sum" ? 1 : -1); });
  AddArgs<float> b;
  b.count = what == "count" ? -1 : 5;
  if (what == "add") return support::complaint_without([&] { add(on, b); }, b.y, b.a, b.b);
  return support::complaint_of([&] { add(on, b); });
}

double run_nothing() {
  cuda::Device on;
  add(on, AddArgs<bf16>{});
  adamw(on, AdamWArgs{});
  return sum_of_squares(on, static_cast<const float*>(nullptr), 0);
}

}  // namespace elementwise
