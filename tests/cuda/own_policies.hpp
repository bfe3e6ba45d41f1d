/// A model of a user's own policies (examples/own_policies.hpp) on both devices, for the tests.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "numbers.hpp"

namespace own_policies {

/// Logits, loss, every gradient, and the logits of a decode, by name. `device`: "cpu" or "cuda".
std::map<std::string, std::vector<double>> run(const std::string& device, support::Number number);

/// Tokens of the batch: the longest sum behind a gradient.
inline constexpr std::size_t tokens = 40;

}  // namespace own_policies
