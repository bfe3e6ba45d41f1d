// Tiny models of tests/golden on the CUDA device, whole: passes, gradients and decoding.
#include "model_check.hpp"

TEST_CASE("llama") { models::check("llama"); }
TEST_CASE("llama_tied") { models::check("llama_tied"); }
