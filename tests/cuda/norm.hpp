/// norm_rows and norm_rows_backward on the device, for the tests.
#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "numbers.hpp"
#include "reference/tensor.hpp"

namespace norms {

struct Case {
  std::size_t rows = 1, width = 1;
  double mean = 0;        ///< of the input
  std::size_t shift = 0;  ///< elements from an aligned address
  bool residual = false, in_place = false, accumulate = false;
  bool gradients = true;  ///< of gain and bias are wanted
  int grid_limit = 0;     ///< blocks of a launch; 0: the device's
};
struct Inputs {
  reference::Tensor<double> x, residual, gain, bias, dy, dx_before, gradient_before;
};
struct Results {
  std::vector<double> y, y_in_place, dx, dgain, dbias;
};

/// rms, rms_one_plus, rms_plain, layer, layer_plain, none, tanh (the test's own policy).
Results run(const std::string& kind, support::Number number, const Case& c, const Inputs& in);

/// What a wrong call says.
std::string complaint_without(const std::string& what);
std::string complaint_about_rows();
std::string complaint_about_width(int width);
void run_nothing();

}  // namespace norms
