// test: sanitize
// sample_rows on the CPU: against the judge, and the arithmetic that all devices share.
#include "kernel/sampling_cases.hpp"

#include "typeformer/kernel/cpu/sampling.hpp"
#include "typeformer/kernel/token_choice.hpp"

namespace {

using namespace sampling;
namespace tf = typeformer;

Ids sample(const Rows& rows) {
  tf::cpu::Device on(2);
  Ids ids(rows.rules.size(), -99);
  sample_rows(on, tf::SampleArgs{.ids = ids.data(),
                                 .logits = rows.logits.data(),
                                 .rules = rows.rules.data(),
                                 .rows = static_cast<std::int64_t>(ids.size()),
                                 .vocab = static_cast<int>(rows.vocab)});
  return ids;
}

}  // namespace

TEST_CASE("temperature 0, one token kept, or nearly no temperature: the likeliest, the lowest id of equals") {
  check_likeliest(sample);
}
TEST_CASE("top-k and top-p keep exactly the likeliest tokens") { check_kept(sample); }
TEST_CASE("tokens come as often as softmax(logits / temperature) says") { check_frequencies(sample, 40000); }
TEST_CASE("NaN, +infinity, and nothing but -infinity give no token") { check_no_token(sample); }

TEST_CASE("options and logits of all kinds, against the judge") {
  for (const std::size_t vocab : {1u, 2u, 31u, 64u, 65u, 200u}) {
    const Rows rows = random_rows(vocab, 500, vocab);
    check_with_judge(rows, sample(rows));
  }
  const Rows rows = random_rows(5000, 20, 1);
  check_with_judge(rows, sample(rows));
}

TEST_CASE("keys are in the order of the numbers") {
  const float ascending[] = {-infinity, -largest, -1.f, -1e-45f, 0.f, 1e-45f, 1e-38f, 1.f, 1.5f, largest, infinity};
  for (std::size_t i = 1; i < std::size(ascending); ++i)
    CHECK(tf::detail::order_key(ascending[i - 1]) < tf::detail::order_key(ascending[i]));
  CHECK(tf::detail::order_key(-0.f) == tf::detail::order_key(0.f));
  for (const float nan : {not_a_number, -not_a_number})
    CHECK(tf::detail::order_key(nan) > tf::detail::order_key(infinity));
}
TEST_CASE("likelihoods are powers of two to 26 digits, as long as they have them") {
  CHECK(tf::detail::likelihood(0.f) == tf::detail::Amount{1} << 40);
  CHECK(tf::detail::likelihood(1.f) == tf::detail::Amount{1} << 39);
  CHECK(tf::detail::likelihood(41.f) == 0);
  CHECK(tf::detail::likelihood(infinity) == 0);
  double worst = 0;
  tf::detail::Amount before = tf::detail::likelihood(0.f);
  for (int i = 1; i < 45 * 4096; ++i) {
    const double bits = i / 4096.;
    const tf::detail::Amount amount = tf::detail::likelihood(static_cast<float>(bits));
    CHECK_MESSAGE(amount <= before, bits);
    before = amount;
    const double exact = std::exp2(40 - bits);
    worst = std::max(worst, (std::fabs(static_cast<double>(amount) - exact) - 1) / exact);  // 1: cut off
  }
  CHECK(worst < 0x1p-26);
}
TEST_CASE("a sum's share and a place in it stay inside") {
  using tf::detail::reached_at;
  using tf::detail::unit_at;
  CHECK(reached_at(1e-30f, 1000) == 1);
  CHECK(reached_at(.5f, 1000) == 500);
  CHECK(reached_at(.5f, 1001) == 501);
  CHECK(reached_at(1.f, ~tf::detail::Amount{0} >> 1) == ~tf::detail::Amount{0} >> 1);
  CHECK(unit_at(0, 3) == 0);
  CHECK(unit_at(.999, 3) == 2);
  const tf::detail::Amount odd = (tf::detail::Amount{1} << 60) - 1;  // a double rounds it up
  CHECK(unit_at(1 - 0x1p-53, odd) < odd);
}
