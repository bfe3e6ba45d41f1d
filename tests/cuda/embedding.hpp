/// gather_rows and gather_rows_backward on the device, for the tests.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "numbers.hpp"
#include "reference/tensor.hpp"

namespace embedding {

struct Case {
  std::size_t tokens = 1, width = 1, rows = 1;
  int offset = 0;
  float scale = 1.f;
  bool accumulate = false;
  std::size_t shift = 0;  ///< elements from an aligned address
  int grid_limit = 0;     ///< blocks of a launch; 0: the device's
};
struct Inputs {
  reference::Tensor<double> table, y_before, dy, dtable_before;
  std::vector<std::int32_t> index;
};
struct Results {
  std::vector<double> y, dtable;
};

Results run(support::Number activations, support::Number weights, const Case& c, const Inputs& in);

/// y and dtable of one token whose row lies after 2^33 other elements, which there are not.
Results run_far(const Case& c, const Inputs& in);

/// What a wrong call says; `what` chooses the mistake.
std::string complaint(const std::string& what);
/// Calls with no tokens, and one without a gradient to add to.
void run_nothing();

}  // namespace embedding
