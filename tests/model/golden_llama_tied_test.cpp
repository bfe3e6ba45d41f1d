// The tiny model tests/golden/llama_tied: every hidden state, logits, loss and every gradient against HuggingFace.
#include "model/golden_check.hpp"
#include "model/tiny_models.hpp"

TEST_CASE("llama_tied equals HuggingFace") {
  const harness::GoldenCase golden("llama_tied");
  CHECK(harness::deviations<tiny::LlamaTied>(golden, true) == 0);
}
