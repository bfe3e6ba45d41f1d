// The tiny model tests/golden/gemma3: every hidden state, logits, loss and every gradient against HuggingFace.
#include "model/golden_check.hpp"
#include "model/tiny_models.hpp"

TEST_CASE("gemma3 equals HuggingFace") {
  const harness::GoldenCase golden("gemma3");
  CHECK(harness::deviations<tiny::Gemma3>(golden, true) == 0);
}
