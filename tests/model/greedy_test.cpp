// Greedy decoding with the cache against HuggingFace: the chosen tokens, and every step's logits.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "model/golden_check.hpp"
#include "model/tiny_models.hpp"

namespace {

using namespace typeformer;

template <class M>
void check(const std::string& folder) {
  const auto golden = reference::load_golden(harness::golden_folder(folder));
  const auto& expected_ids = golden.expected.at("greedy.ids").data;
  const auto& expected_logits = golden.expected.at("greedy.logits").data;
  REQUIRE(expected_ids.size() == 16);
  cpu::Device device(2);
  const auto model = harness::model_of<M>(device, golden.parameters);
  std::vector<std::int32_t> ids;
  const auto rows = harness::decode(model, golden.batch[0], expected_ids.size(), ids);
  REQUIRE(ids == std::vector<std::int32_t>(expected_ids.begin(), expected_ids.end()));
  const auto exact = harness::judged_steps(golden, golden.parameters, ids);
  const auto terms = harness::longest_sum(golden.config, {golden.batch[0]});
  const auto verdict = tolerance::compare("greedy.logits", exact, expected_logits, rows, {.terms = terms});
  CHECK_MESSAGE(verdict.ok, verdict.message);
  const std::size_t vocab = exact.size() / ids.size();
  for (std::size_t step = 0; step < ids.size(); ++step) {
    const auto row = [&](const auto& all) {
      return std::vector(all.begin() + static_cast<std::ptrdiff_t>(step * vocab),
                         all.begin() + static_cast<std::ptrdiff_t>((step + 1) * vocab));
    };
    const auto ceiling = tolerance::below_ceiling("step " + std::to_string(step), row(expected_logits), row(rows));
    CHECK_MESSAGE(ceiling.ok, ceiling.message);
  }
}

}  // namespace

TEST_CASE("llama") { check<tiny::Llama>("llama"); }
TEST_CASE("llama_tied: one matrix for both ends, stretched RoPE") { check<tiny::LlamaTied>("llama_tied"); }
TEST_CASE("gemma3: rings of the layers with a window") { check<tiny::Gemma3>("gemma3"); }
TEST_CASE("t5: encode once, then the decoder") { check<tiny::T5>("t5"); }
TEST_CASE("t5_gated") { check<tiny::T5Gated>("t5_gated"); }
