// Gates, sinusoid layouts and blocks without norms against the judge.
#include "model/design_space.hpp"

using namespace design_space;

using Bare = Small::with<NoNorm{}>::with<Biases{.qkv = false, .output = false}>;

TEST_CASE("sigmoid gate, sines before cosines") {
  check<Bare::with<GLU{}>::with<Sinusoidal{.layout = SinusoidLayout::halves}>>("glu");
}
TEST_CASE("bilinear gate, spread timescales, post-norm places") {
  check<Bare::with<LiGLU{}>::with<Sinusoidal{.layout = SinusoidLayout::spread}>::with<PostNorm{}>>("bilinear");
}
TEST_CASE("SELU gate, no positions, double-norm places") {
  check<Bare::with<Gated<SELU>{}>::with<NoPosition{}>::with<DoubleNorm{}>>("selu");
}
