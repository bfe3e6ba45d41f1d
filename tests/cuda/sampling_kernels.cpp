// sample_rows, instantiated for the tests.
#include "sampling.hpp"

#include <span>

#include "arrays.hpp"

namespace sampling {

using namespace typeformer;

Ids run(const Case& c, const Rows& rows) {
  cuda::Device on;
  if (c.grid_limit) on.set_grid_limit(c.grid_limit);
  Logits shifted(c.shift, not_a_number);
  shifted.insert(shifted.end(), rows.logits.begin(), rows.logits.end());
  const Buffer<cuda::Device, float> logits(on, std::span<const float>(shifted));
  const Buffer<cuda::Device, SampleRule> rules(on, std::span<const SampleRule>(rows.rules));
  Ids ids(rows.rules.size(), -99);
  Buffer<cuda::Device, std::int32_t> to(on, std::span<const std::int32_t>(ids));
  sample_rows(on, SampleArgs{.ids = to.data(),
                             .logits = logits.data() + c.shift,
                             .rules = rules.data(),
                             .rows = static_cast<std::int64_t>(ids.size()),
                             .vocab = static_cast<int>(rows.vocab)});
  to.download(std::span<std::int32_t>(ids));
  return ids;
}

Ids run_far(const Rows& rows) {
  cuda::Device on;
  const Buffer<cuda::Device, float> logits(on, std::span<const float>(rows.logits));
  const Buffer<cuda::Device, SampleRule> rules(on, std::span<const SampleRule>(rows.rules));
  Ids ids(rows.rules.size(), -99);
  Buffer<cuda::Device, std::int32_t> to(on, std::span<const std::int32_t>(ids));
  const auto count = static_cast<std::int64_t>(ids.size()), vocab = static_cast<std::int64_t>(rows.vocab);
  const std::int64_t first = (std::int64_t{1} << 33) / vocab;
  const SampleArgs a{.ids = support::before(to.data(), first),
                     .logits = support::before(logits.data(), first * vocab),
                     .rules = support::before(rules.data(), first),
                     .rows = first + count,
                     .vocab = static_cast<int>(vocab)};
  const simt::LaunchShape shape(dim3(static_cast<unsigned>(count)), dim3(64), 0, on.stream());
  constexpr auto kernel = cuda::detail::sample_rows<cuda::detail::sample_most_threads>;
  cuda::detail::check(simt::launch(kernel, shape, first, a), "test", "launch");
  to.download(std::span<std::int32_t>(ids));
  return ids;
}

std::string complaint(const std::string& what) {
  cuda::Device on;
  SampleArgs a;
  a.rows = what == "rows" ? -1 : 1;
  a.vocab = what == "vocab" ? 0 : what == "wide" ? (1 << 23) + 1 : 4;
  if (what == "arrays") return support::complaint_without([&] { sample_rows(on, a); }, a.ids, a.logits, a.rules);
  return support::complaint_of([&] { sample_rows(on, a); });
}

void run_nothing() {
  cuda::Device on;
  for (const int vocab : {4, 1 << 23}) sample_rows(on, SampleArgs{.vocab = vocab});
  on.synchronize();
}

}  // namespace sampling
