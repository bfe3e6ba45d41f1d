/// Units compiled for different CPUs, and for the host's CUDA layer, in one program: equal flags share their functions,
/// different flags must not, or the linker would keep one unit's code for all and an old CPU would meet new
/// instructions.
#include "unit.hpp"

#include <doctest/doctest.h>

TEST_CASE("units with equal flags have the same types, with different flags different ones") {
  const Told plain = plain_unit(), second = second_plain_unit(), avx2 = avx2_unit(), simt = simt_unit();
  CHECK(plain.device == second.device);
  CHECK(plain.error == second.error);
  CHECK(plain.device != avx2.device);
  CHECK(plain.error != avx2.error);
  CHECK(plain.error != simt.error);
  CHECK(avx2.error != simt.error);
  for (const Told& told : {plain, second, avx2, simt}) CHECK(told.rounded == 1.f);  // halfway, ties to even
}
