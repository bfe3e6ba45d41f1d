/// What every unit of the program tells about itself.
#pragma once
#include <string>

/// The name that the unit's device and one of its inline functions carry, and a result of that function.
struct Told {
  std::string device, error;
  float rounded = 0.f;
};

Told plain_unit();
Told second_plain_unit();
Told avx2_unit();
Told simt_unit();
