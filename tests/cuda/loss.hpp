/// shape_logits and cross_entropy on the device, for the tests.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "numbers.hpp"
#include "reference/tensor.hpp"

namespace loss {

struct Case {
  std::size_t rows = 1, vocab = 1;
  float factor = 1.f, cap = 0.f, z_loss = 0.f, smoothing = 0.f, gradient_scale = 1.f;
  std::size_t shift = 0;  ///< elements from an aligned address
  int grid_limit = 0;     ///< blocks of a launch; 0: the device's
};
struct Inputs {
  reference::Tensor<double> logits;
  std::vector<std::int32_t> labels;
};
struct Results {
  std::vector<double> loss, gradient;
  std::vector<double> loss_alone, logits_alone;  ///< of a call without gradient
};

Results run(support::Number number, const Case& c, const Inputs& in);
/// The same with the rows after 2^33 other logits, which there are not.
Results run_far(support::Number number, const Case& c, const Inputs& in);
std::vector<double> shape_logits(const Case& c, const std::vector<double>& logits);

/// What a wrong call says; `what` chooses the mistake.
std::string complaint(const std::string& what);
void run_nothing();

}  // namespace loss
