// The tiny model tests/golden/t5: every hidden state, logits, loss and every gradient against HuggingFace.
#include "model/golden_check.hpp"
#include "model/tiny_models.hpp"

TEST_CASE("t5 equals HuggingFace") {
  const harness::GoldenCase golden("t5");
  CHECK(harness::deviations<tiny::T5>(golden, true) == 0);
}
