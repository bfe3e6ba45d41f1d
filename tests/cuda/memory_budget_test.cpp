// How well each kernel's accesses fit the memory: sectors of global memory for each request, and conflicts between
// banks of shared memory. Counted, not timed: facts of addresses that hold on every GPU.
#include "memory_budget.hpp"

#include <cstdio>

#include "support.hpp"

namespace {

using memory_budget::Traffic;
using support::Number;

/// What a kernel may cost. Most have every byte of every sector in use, and no conflicts.
struct Budget {
  int bytes = 16;            ///< of the widest access of a lane
  double f32 = 1, bf16 = 1;  /// least share of the requested sectors' bytes that is used
  double conflicts = 0;      ///< most waits for a bank, for each request of shared memory
};

/// Why shares below 1 are as they are:
///
/// lse: it lies [tokens, heads], so that a tile's rows are `heads` floats apart. One request for each tile.
/// statistics: over all heads, four floats of a token that all lanes of a head read one by one.
/// halves: beside bf16 a lane's 8 floats (gains, biases, angles, rows of a table's gradient) are two accesses of 16
///   bytes, 32 bytes apart. Each request touches every sector, of which it uses one half; the second one finds the
///   sectors in the L1 cache, and stores meet in the L2 cache.
/// pairs: the tensor cores leave a lane two neighbouring bf16 of a row, so that four lanes' stores fill one half of a
///   sector. The next request fills the other half, in the L2 cache. (Lanes would have to exchange them first.)
/// branches: lanes read a logit again only where its bin is in question; counted as described in
///   memory_budget_kernels.cpp. Bins of a histogram are met as the logits have it.
const std::map<std::string, Budget>& budgets() {
  static const std::map<std::string, Budget> all{
      {"norm_rows", {.bf16 = .69}},           // halves
      {"norm_rows_backward", {.bf16 = .69}},  // halves
      {"sum_slabs", {.bytes = 4}},
      {"add_slabs", {.bytes = 4}},
      {"round_numbers", {.bytes = 4}},
      {"add", {}},
      {"gather_rows", {}},
      {"gather_rows_backward", {.bf16 = .63}},                // halves
      {"prepare_heads", {.bf16 = .88}},                       // halves
      {"prepare_heads_backward", {.f32 = .96, .bf16 = .85}},  // statistics; halves
      {"prepare_all_heads", {.bf16 = .77}},                   // halves
      {"all_heads_gradient_statistics", {.bf16 = .76}},       // halves
      {"attend", {.f32 = .98, .bf16 = .8}},                   // lse; pairs
      {"attend_row_dots", {.bytes = 4}},
      {"attend_backward_queries", {.f32 = .98, .bf16 = .8}},  // lse; pairs
      {"attend_backward_keys", {.f32 = .95, .bf16 = .78}},    // lse; pairs
      {"attend_split", {}},
      {"combine_splits", {.bytes = 4}},
      {"activate", {}},
      {"activate_backward", {}},
      {"cross_entropy", {}},
      {"adamw", {}},
      {"sum_squares", {}},
      {"add_up", {}},
      {"shape_logits", {}},
      {"sample_rows", {.bytes = 4, .f32 = .8, .conflicts = .1}},  // branches
  };
  return all;
}

void check(Number number) {
  REQUIRE_MESSAGE(memory_budget::available(), "accesses are counted in a build of the race checker's");
  const auto traffic = memory_budget::traffic(number);
  for (const auto& [name, t] : traffic) {
    CAPTURE(name);
    REQUIRE(budgets().count(name) == 1);
    const Budget& budget = budgets().at(name);
    const auto each = [](std::uint64_t count, std::uint64_t requests) {
      return requests ? static_cast<double>(count) / static_cast<double>(requests) : 0;
    };
    const double sectors = each(t.sectors, t.requests), ideal = each(t.ideal_sectors, t.requests),
                 conflicts = each(t.wavefronts - t.ideal_wavefronts, t.shared_requests),
                 share = number == Number::f32 ? budget.f32 : budget.bf16;
    std::printf("%-4s %-30s %6.2f sectors for each request, ideally %6.2f; %6.4f conflicts for each of %d requests\n",
                number == Number::f32 ? "f32" : "bf16", name.c_str(), sectors, ideal, conflicts,
                static_cast<int>(t.shared_requests));
    CHECK(t.requests > 0);
    CHECK(ideal / sectors >= share);
    CHECK(ideal <= budget.bytes);  // 32 lanes of so many bytes are so many sectors
    CHECK(conflicts <= budget.conflicts);
  }
  // not on bf16: what works on floats alone; not on f32: the bias that is rounded
  CHECK(traffic.size() == budgets().size() - (number == Number::f32 ? 1 : 5));
}

TEST_CASE("memory: sectors and banks of every kernel, f32") { check(Number::f32); }
TEST_CASE("memory: sectors and banks of every kernel, bf16") { check(Number::bf16); }

}  // namespace
