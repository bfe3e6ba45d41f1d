// sample_rows against the judge and against the CPU, whose ids it gives exactly: options and logits of all kinds, rows
// from one token to 300,000, unaligned ones, grids in pieces.
#include "sampling.hpp"

#include <numbers>

#include "support.hpp"
#include "typeformer/kernel/cpu/sampling.hpp"

namespace {

using namespace sampling;

Ids on_cpu(const Rows& rows) {
  typeformer::cpu::Device on(1);
  Ids ids(rows.rules.size());
  sample_rows(on, typeformer::SampleArgs{.ids = ids.data(),
                                         .logits = rows.logits.data(),
                                         .rules = rows.rules.data(),
                                         .rows = static_cast<std::int64_t>(ids.size()),
                                         .vocab = static_cast<int>(rows.vocab)});
  return ids;
}
Ids on_cuda(const Rows& rows) { return run({}, rows); }

/// Rows of all kinds, equal to the CPU's, and equal when they are run again.
void check(const Case& c, const Rows& rows) {
  CAPTURE(rows.vocab);
  CAPTURE(c.shift);
  const Ids ids = run(c, rows);
  CHECK(ids == on_cpu(rows));
  CHECK(ids == run(c, rows));
}

}  // namespace

TEST_CASE("sampling: the likeliest") { check_likeliest(on_cuda); }
TEST_CASE("sampling: kept sets") { check_kept(on_cuda); }
TEST_CASE("sampling: frequencies") { check_frequencies(on_cuda, 4000); }
TEST_CASE("sampling: rows without a token") { check_no_token(on_cuda); }

TEST_CASE("sampling: a thousand rules and rows against the judge") {
  for (const std::size_t vocab : {1u, 33u, 64u, 200u}) {
    const Rows rows = random_rows(vocab, static_cast<std::size_t>(support::random_cases(250)), vocab);
    check_with_judge(rows, on_cuda(rows));
    check({}, rows);
  }
}

TEST_CASE("sampling: rows around the sizes of warps, pieces and blocks, unaligned, grids in pieces") {
  for (const std::size_t vocab : {31u, 32u, 63u, 65u, 511u, 513u, 1025u, 2049u}) {
    const std::size_t count = 7, unit = 128;  // a device's memory comes in 512 bytes: the rows end where it does
    check({.shift = (unit - count * vocab % unit) % unit, .grid_limit = 3}, random_rows(vocab, count, vocab));
  }
}

TEST_CASE("sampling: wide rows") {
  const auto cases = static_cast<std::size_t>(support::random_cases(30));
  check({}, random_rows(8192, cases, 1));
  check({.shift = 1}, random_rows(9001, cases, 2));
  check({.shift = 3}, random_rows(support::random_cases(300) == 300 ? 300000 : 30000, 1 + cases / 8, 3));
  const std::size_t vocab = 20000;
  Rows rows{.vocab = vocab};  // equals everywhere, and nearly everything masked
  rows.add(Logits(vocab, 1.f), {.seed = 1, .temperature = 1.f, .top_k = 7777, .top_p = .9f});
  Logits masked(vocab, -infinity);
  masked[12345] = masked[17] = 0.f;
  rows.add(masked, {.seed = 2, .temperature = 1.f, .top_k = 50, .top_p = .9f});
  check({}, rows);
}

TEST_CASE("sampling: the first and the last of the likelihoods' units, which are 2^-40") {
  // seeds that begin with the lowest and the highest of uniform's numbers; a temperature at which logits are bits
  const float bits = std::numbers::log2e_v<float>;
  const SampleRule lowest{.seed = 0x61c8864680b583eb, .temperature = bits};
  const SampleRule highest{.seed = 0x31628af67b2131ab, .temperature = bits};
  REQUIRE(typeformer::detail::uniform(lowest.seed, 0) == 0);
  REQUIRE(typeformer::detail::uniform(highest.seed, 0) == 1 - 0x1p-53);
  CHECK(one(on_cuda, {0.f, -39.5f}, highest) == 1);  // one unit
  CHECK(one(on_cuda, {0.f, -40.5f}, highest) == 0);  // none
  CHECK(one(on_cuda, {0.f, -64.f}, highest) == 0);
  CHECK(one(on_cuda, {-infinity, 0.f}, lowest) == 1);
  Logits logits(8193, 0.f);  // 2^53 + 1 units, which is no double: nobody is left out
  logits[0] = -39.5f;
  CHECK(one(on_cuda, logits, lowest) == 0);
  CHECK(one(on_cuda, logits, highest) == 8192);
}

TEST_CASE("sampling: offsets of more than 32 bits") {
  const Rows rows = random_rows(64, 3, 7);
  CHECK(run_far(rows) == on_cpu(rows));
}

TEST_CASE("sampling: wrong calls and nothing to do") {
  CHECK(complaint("rows") == "sample_rows: rows: expected 0 or more, got -1");
  CHECK(complaint("vocab") == "sample_rows: vocab: expected 1 to 2^23, got 0");
  CHECK(complaint("wide") == "sample_rows: vocab: expected 1 to 2^23, got 8388609");
  CHECK(complaint("arrays") == "sample_rows: ids, logits, rules: expected arrays, got null");
  run_nothing();
}
