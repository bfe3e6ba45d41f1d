// One network, every way of running it: the same numbers, with f32 and with bf16 weights.
#include "model/consistency.hpp"
#include "model/tiny_models.hpp"

TEST_CASE("f32 weights") {
  typeformer::cpu::Device device(2);
  consistency::check<tiny::Llama, float>(device);
}
TEST_CASE("bf16 weights") {
  typeformer::cpu::Device device(2);
  consistency::check<tiny::Llama, typeformer::bf16>(device);
}
