/// add, adamw and sum_of_squares on the device, for the tests.
#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "numbers.hpp"

namespace elementwise {

struct Case {
  std::size_t shift = 0;  ///< elements from an aligned address
  int grid_limit = 0;     ///< blocks of a launch; 0: the device's
};

/// a + b in an array of its own, in a's place, and in b's.
struct Sums {
  std::vector<double> y, over_a, over_b;
};
Sums add(support::Number number, const Case& c, const std::vector<double>& a, const std::vector<double>& b);

struct Optimizer {
  float learning_rate = 1e-3f, beta1 = .9f, beta2 = .999f, eps = 1e-8f, decay = 0.f, gradient_scale = 1.f;
};
struct Weights {
  std::vector<double> weight, m, v;
};
/// Steps 1, 2 ... with a gradient each.
Weights adamw(const Case& c, const Optimizer& optimizer, const Weights& before,
              const std::vector<std::vector<double>>& gradients);

double sum_of_squares(const Case& c, const std::vector<double>& x);

/// a + b of elements that lie after 2^33 others, which there are not.
std::vector<double> add_far(const std::vector<double>& a, const std::vector<double>& b);

/// What a wrong call says; `what` chooses the mistake.
std::string complaint(const std::string& what);
/// Calls with nothing to do; returns the sum of no squares.
double run_nothing();

}  // namespace elementwise
