// test: sanitize
// The contract: with no rows, tokens or elements nothing happens, and pointers may be null.
#include "kernel/support.hpp"

TEST_CASE("no rows, tokens or elements, and null pointers") {
  using namespace kernel_test;
  cpu::Device on(2);
  gather_rows(on, GatherArgs<float, float>{.width = 4});
  gather_rows_backward(on, GatherBackwardArgs<float>{.width = 4});
  const auto norm = norm_form(fixed<LayerNorm{}>);
  norm_rows(on, norm, NormArgs<float>{.width = 4});
  norm_rows_backward(on, norm, NormBackwardArgs<float>{.width = 4});
  linear(on, LinearArgs<float, float>{.in = 4, .out = 4});
  linear_backward(on, LinearBackwardArgs<float, float>{.in = 4, .out = 4});
  const Rotation<Pairs::halves> rotation{.width = 2};
  const HeadsArgs<float> heads{.heads = 2, .kv_heads = 1, .head_dim = 4};
  prepare_heads(on, norm, rotation, heads);
  prepare_heads_backward(on, norm, rotation, HeadsBackwardArgs<float>{.forward = heads});
  const AttendArgs<float> attended{.heads = 2, .kv_heads = 1, .head_dim = 4};
  attend(on, Causal{}, ScoreForm<false, NoBias>{}, attended);
  attend_backward(on, Causal{}, ScoreForm<false, TableBiasForm>{}, AttendBackwardArgs<float>{.forward = attended});
  activate(on, SwiGLU{}, ActivateArgs<float>{.width = 4});
  activate_backward(on, SwiGLU{}, ActivateBackwardArgs<float>{.width = 4});
  shape_logits(on, ShapeLogitsArgs{});
  cross_entropy(on, CrossEntropyArgs<float>{.vocab = 4});
  sample_rows(on, SampleArgs{.vocab = 4});
  add(on, AddArgs<float>{});
  adamw(on, AdamWArgs{});
  CHECK(sum_of_squares(on, nullptr, 0) == 0);
}
