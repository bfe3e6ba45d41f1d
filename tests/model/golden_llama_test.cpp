// The tiny model tests/golden/llama: every hidden state, logits, loss and every gradient against HuggingFace.
#include "model/golden_check.hpp"
#include "model/tiny_models.hpp"

TEST_CASE("llama equals HuggingFace") {
  const harness::GoldenCase golden("llama");
  CHECK(harness::deviations<tiny::Llama>(golden, true) == 0);
}
