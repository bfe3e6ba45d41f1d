// Tiny models of tests/golden on the CUDA device, whole: passes, gradients and decoding.
#include "model_check.hpp"

TEST_CASE("gemma3") { models::check("gemma3"); }
