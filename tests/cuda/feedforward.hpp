/// activate and activate_backward on the device, for the tests.
#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "numbers.hpp"
#include "reference/tensor.hpp"

namespace feedforward {

struct Case {
  std::size_t rows = 1, width = 1;
  std::size_t x_stride = 0, dx_stride = 0;  ///< 0: dense
  std::size_t shift = 0;                    ///< elements from an aligned address
  bool in_place = false;                    ///< dx is x
  int grid_limit = 0;                       ///< blocks of a launch; 0: the device's
};
struct Inputs {
  reference::Tensor<double> x, dy;  ///< x: [rows, width or 2 width]
};
/// dx: what lies between its rows is NaN, or what x has there when dx is x.
struct Results {
  std::vector<double> y, dx;
};

/// The activations of the policy folder by the names of reference::Activation, "gated_" before them; "softsign" and
/// "gated_softsign" are the test's own and know float only.
Results run(const std::string& kind, support::Number number, const Case& c, const Inputs& in);

/// SwiGLU with the rows after 2^33 other elements, which there are not.
Results run_far(support::Number number, const Case& c, const Inputs& in);

/// What a wrong call says; `what` chooses the mistake.
std::string complaint(const std::string& what);
void run_nothing();

}  // namespace feedforward
