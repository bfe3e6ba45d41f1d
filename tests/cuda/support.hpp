/// What the tests of the CUDA operations share: random inputs, comparison with the judge and with PyTorch's results.
/// The tests know nothing of CUDA: they and the judge are compiled once, the kernels once for each way of running them.
#pragma once
#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "mode.hpp"
#include "numbers.hpp"
#include "reference/random.hpp"
#include "reference/tensor.hpp"

namespace support {

using reference::Tensor;
using Golden = std::map<std::string, Tensor<double>>;

/// Random numbers that the type holds exactly, so that every precision starts from the same input.
Tensor<double> draw(Number number, reference::Random& random, std::vector<std::size_t> shape, double deviation = 1,
                    double mean = 0);

/// Twice the naive error of the same precision and a floor, as tests/tolerance.hpp derives it. `roundings`: in the
/// longest chain behind an element. Of float arithmetic that is stored as bf16, the one rounding to bf16 is all that
/// shows.
void compare(Number number, const std::string& name, const std::vector<double>& judge, std::vector<double> naive,
             const std::vector<double>& ours, std::size_t roundings, double magnitude = 0);

/// A file of tests/golden/ops.
Golden golden(const std::string& name);

/// The norm of the difference over the norm of the golden value may be twice that of PyTorch in the same precision; in
/// bf16 twice that of its fused attention, where the file has it. The floor of f32 is half a unit in the last place.
void compare_with_golden(Number number, const std::string& name, const Golden& golden, const std::vector<double>& ours);

}  // namespace support
