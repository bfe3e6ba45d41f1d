/// linear and linear_backward on the device, for the tests.
#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "numbers.hpp"
#include "reference/tensor.hpp"

namespace linear_cuda {

struct Case {
  std::size_t rows = 1, in = 1, out = 1;
  std::size_t x_stride = 0, y_stride = 0, shift = 0;
  bool bias = true, residual = false, in_place = false, accumulate = false;
  bool dx = true, dw = true, dbias = true;  ///< are wanted; dbias: where there is a bias
};
struct Inputs {
  reference::Tensor<double> x, w, bias, residual, dy, dx_before, dw_before, dbias_before;  ///< all dense
};
struct Results {
  std::vector<double> y, dx, dw, dbias;
};

Results run(support::Number number, const Case& c, const Inputs& in);

/// What a wrong call says; `what` chooses the mistake.
std::string complaint(const std::string& what);

/// Algorithms chosen after `calls` products of one shape, and one more of another.
std::size_t plans_after(int calls);

/// Products of so many different shapes on one device: whether all were right, the limit of plans, the most kept at a
/// time, and how many in the end.
struct Plans {
  bool right = true;
  std::size_t limit = 0, most = 0, last = 0;
};
Plans plans_of(int shapes);

}  // namespace linear_cuda
