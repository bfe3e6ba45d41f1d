/// What every unit of the program computes; the units differ in their compiler flags.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

struct UnitResult {
  std::string device;  ///< the mangled name of the unit's device type
  std::vector<float> normed, attended, logits;
};

/// LayerNorm of `rows` rows of x, causal attention of x over itself, and the logits of a checkpoint for some ids.
struct UnitInput {
  std::vector<float> x;
  int rows = 0, width = 0;
  std::string folder;
  std::vector<std::int32_t> ids;
};

UnitResult default_unit(const UnitInput& input);
UnitResult second_default_unit(const UnitInput& input);
UnitResult no_avx_unit(const UnitInput& input);
UnitResult avx2_unit(const UnitInput& input);
UnitResult avx512_unit(const UnitInput& input);
