// A replayed graph must be the pass that was asked for: its memory and its sequences may have changed since.
#include "decode_graph.hpp"

#include <doctest/doctest.h>

namespace {

/// Logits of both devices are sums of a few dozen products of numbers below 1, in float.
constexpr double rounding = 1e-5;

void check(const decode_graph::Outcome& outcome) {
  CHECK_MESSAGE(outcome.wrong.empty(), outcome.wrong);
  CHECK(outcome.difference <= rounding);
}

}  // namespace

TEST_CASE("decode graph: a model made anew where the old one's matrices were") {
  check(decode_graph::model_made_anew());
}
TEST_CASE("decode graph: a source encoded again, whose layers lie elsewhere but for the first") {
  check(decode_graph::source_moved());
}
TEST_CASE("decode graph: other sequences of a batch, as many as before") { check(decode_graph::other_sequences()); }
