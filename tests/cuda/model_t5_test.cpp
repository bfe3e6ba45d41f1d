// Tiny models of tests/golden on the CUDA device, whole: passes, gradients and decoding.
#include "model_check.hpp"

TEST_CASE("t5") { models::check("t5"); }
TEST_CASE("t5_gated") { models::check("t5_gated"); }
