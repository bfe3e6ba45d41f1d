/// sample_rows on the device, for the tests.
#pragma once
#include <cstddef>
#include <string>

#include "kernel/sampling_cases.hpp"

namespace sampling {

struct Case {
  std::size_t shift = 0;  ///< elements from an aligned address
  int grid_limit = 0;     ///< blocks of a launch; 0: the device's
};
Ids run(const Case& c, const Rows& rows);
/// The same with the rows after 2^33 other logits, which there are not.
Ids run_far(const Rows& rows);

/// What a wrong call says; `what` chooses the mistake.
std::string complaint(const std::string& what);
void run_nothing();

}  // namespace sampling
