// The tiny model tests/golden/t5_gated: every hidden state, logits, loss and every gradient against HuggingFace.
#include "model/golden_check.hpp"
#include "model/tiny_models.hpp"

TEST_CASE("t5_gated equals HuggingFace") {
  const harness::GoldenCase golden("t5_gated");
  CHECK(harness::deviations<tiny::T5Gated>(golden, true) == 0);
}
