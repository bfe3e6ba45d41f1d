// The kernels of embeddings, instantiated for the tests.
#include "embedding.hpp"

#include <span>

#include "arrays.hpp"

namespace embedding {
namespace {

using namespace typeformer;
using support::Array;
using support::Number;

template <class T, class W>
Results run_types(const Case& c, const Inputs& in) {
  cuda::Device on;
  if (c.grid_limit) on.set_grid_limit(c.grid_limit);
  Array<T> y(on, in.y_before.data, c.shift), dy(on, in.dy.data, c.shift);
  Array<W> table(on, in.table.data, c.shift);
  Array<float> dtable(on, in.dtable_before.data, c.shift);
  Buffer<cuda::Device, std::int32_t> index(on, std::span<const std::int32_t>(in.index));
  GatherArgs<T, W> a;
  a.y = y.data();
  a.table = table.data();
  a.index = index.data();
  a.tokens = static_cast<std::int64_t>(c.tokens);
  a.width = static_cast<int>(c.width);
  a.offset = c.offset;
  a.scale = c.scale;
  a.accumulate = c.accumulate;
  gather_rows(on, a);
  GatherBackwardArgs<T> b;
  b.dtable = dtable.data();
  b.dy = dy.data();
  b.index = a.index;
  b.tokens = a.tokens;
  b.width = a.width;
  b.offset = c.offset;
  b.scale = c.scale;
  gather_rows_backward(on, b);
  return {y.download(), dtable.download()};
}

}  // namespace

Results run_far(const Case& c, const Inputs& in) {
  cuda::Device on;
  Array<float> y(on, in.y_before.data), dy(on, in.dy.data), table(on, in.table.data), dtable(on, in.dtable_before.data);
  const auto width = static_cast<std::int64_t>(c.width), first = (std::int64_t{1} << 33) / width;
  const std::vector<std::int32_t> far{static_cast<std::int32_t>(first + in.index[0])};
  Buffer<cuda::Device, std::int32_t> index(on, std::span<const std::int32_t>(far));
  GatherArgs<float, float> a;
  a.y = y.data();
  a.table = support::before(table.data(), first * width);
  a.index = index.data();
  a.tokens = 1;
  a.width = static_cast<int>(width);
  gather_rows(on, a);
  GatherBackwardArgs<float> b;
  b.dtable = support::before(dtable.data(), first * width);
  b.dy = dy.data();
  b.index = a.index;
  b.tokens = 1;
  b.width = a.width;
  gather_rows_backward(on, b);
  return {y.download(), dtable.download()};
}

Results run(Number activations, Number weights, const Case& c, const Inputs& in) {
  if (activations == Number::f32) return run_types<float, float>(c, in);
  return weights == Number::f32 ? run_types<bf16, float>(c, in) : run_types<bf16, bf16>(c, in);
}

std::string complaint(const std::string& what) {
  cuda::Device on;
  GatherArgs<float, float> a;
  GatherBackwardArgs<float> b;
  float number = 0;
  a.tokens = b.tokens = what == "tokens" ? -1 : 1;
  a.width = what == "width" ? 0 : what == "large width" ? (1 << 29) + 1 : 4;
  b.width = 4;
  b.dtable = &number;
  if (what == "many") {
    const std::int32_t index = 0;
    b.dy = &number;
    b.index = &index;
    b.tokens = std::int64_t{1} << 31;
    return support::complaint_of([&] { gather_rows_backward(on, b); });
  }
  if (what == "backward") return support::complaint_without([&] { gather_rows_backward(on, b); }, b.dy, b.index);
  if (what == "backward tokens") {
    b.tokens = -1;
    return support::complaint_of([&] { gather_rows_backward(on, b); });
  }
  if (what == "null") return support::complaint_without([&] { gather_rows(on, a); }, a.y, a.table, a.index);
  return support::complaint_of([&] { gather_rows(on, a); });
}

void run_nothing() {
  cuda::Device on;
  GatherArgs<bf16, float> a;
  GatherBackwardArgs<bf16> b;
  a.width = b.width = 8;
  gather_rows(on, a);
  gather_rows_backward(on, b);
  b.tokens = 3;
  gather_rows_backward(on, b);
  on.synchronize();
}

}  // namespace embedding
