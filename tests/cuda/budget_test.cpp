// What the passes queue is what describe's plan says, and no more than the budgets here.
#include "budget.hpp"

#include <cstdio>
#include <cstdlib>

#include "support.hpp"

namespace {

using budget::Counts;
using budget::Passes;

void print(const char* what, const Counts& c) {
  if (!std::getenv("TYPEFORMER_VERBOSE")) return;
  std::printf("%s: %d kernels, %d products, %d copies, %d replays, %d launch calls, %d waits, %d allocations\n", what,
              static_cast<int>(c.all_kernels()), static_cast<int>(c.products), static_cast<int>(c.copies),
              static_cast<int>(c.replays), static_cast<int>(c.launches), static_cast<int>(c.waits),
              static_cast<int>(c.allocations));
  for (const auto& [name, times] : c.kernels) std::printf("  %4d %s\n", static_cast<int>(times), name.c_str());
}

std::uint64_t of(const std::map<std::string, std::uint64_t>& counts, const std::string& name) {
  const auto found = counts.find(name);
  return found == counts.end() ? 0 : found->second;
}

/// `biased_products`: of a layer; in bf16 a kernel rounds the bias.
void check(const std::string& model, std::uint64_t biased_products) {
  const Passes p = budget::passes(model);
  print("prefill", p.prefill);
  print("decode", p.decode);
  print("training", p.training);
  print("step", p.step);
  const auto layers = static_cast<std::uint64_t>(p.layers);

  SUBCASE("a prompt is the plan: one kernel or product for each of its operations") {
    for (const std::string name : {"norm_rows", "prepare_heads", "activate"})
      CHECK_MESSAGE(of(p.prefill.kernels, name) == of(p.planned, name), name);
    CHECK(of(p.prefill.kernels, "attend") + of(p.prefill.kernels, "attend_split") == of(p.planned, "attend"));
    CHECK(of(p.prefill.kernels, "combine_splits") == of(p.prefill.kernels, "attend_split"));
    CHECK(of(p.prefill.kernels, "shape_logits") <= 2 * of(p.planned, "shape_logits"));  // vectors, and the rest
    CHECK(p.prefill.products == of(p.planned, "linear"));
    CHECK(of(p.prefill.kernels, "gather_rows") == of(p.planned, "gather_rows") + 1);  // the last token's row
    CHECK(of(p.prefill.kernels, "round_numbers") == biased_products * layers);
    CHECK(of(p.prefill.kernels, "sample_rows") == 1);
    CHECK(p.prefill.copies == 2);  // its lists, its token
    CHECK(p.prefill.replays == 0);
    CHECK(p.prefill.allocations == 0);
  }
  SUBCASE("a decode step is one graph") {
    CHECK(p.decode.replays == 1);
    CHECK(p.decode.launches == 0);
    CHECK(p.decode.copies == 2);
    CHECK(p.decode.waits <= 2);  // for the token, and for a piece of pinned memory
    CHECK(p.decode.allocations == 0);
    CHECK(p.decode.products == of(p.planned, "linear"));
    CHECK(p.decode.all_kernels() == p.prefill.all_kernels() - 1);
  }
  SUBCASE("a training step") {
    CHECK(p.training.products == 3 * of(p.planned, "linear"));  // y, dx, dw
    CHECK(p.training.replays == 0);
    CHECK(p.training.allocations == 0);
    // forward 5 or 7; backward of attention 3, of heads and activation 1 each, of every norm 1; two for the gradient of
    // every vector: 4 biases and 2 gains, or 6 gains
    CHECK(p.training.all_kernels() <= (7 + 5 + 4 + 2 * 6) * layers + 16);
    CHECK(p.step.all_kernels() <= 4);  // ranges of the arena that decay alike
  }
}

/// The passes ask for what describe says, and for lists.
void check_memory(const std::string& model) {
  const budget::Memory m = budget::memory(model);
  CAPTURE(m.pass);
  CAPTURE(m.planned_pass);
  CHECK(m.pass >= m.planned_pass);
  CHECK(m.pass <= m.planned_pass + m.lists);
  CAPTURE(m.training);
  CAPTURE(m.planned_training);
  CHECK(m.training >= m.planned_training);
  CHECK(m.training <= m.planned_training + m.lists);
}

}  // namespace

TEST_CASE("budget: memory is planned") {
  check_memory("llama");
  check_memory("gemma3");
}
TEST_CASE("budget: llama") { check("llama", 4); }
TEST_CASE("budget: gemma3, double norms and q/k norms") { check("gemma3", 0); }
