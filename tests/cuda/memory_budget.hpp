/// What each kernel asks of the memory, counted by the race checker.
#pragma once
#include <cstdint>
#include <map>
#include <string>

#include "numbers.hpp"

namespace memory_budget {

/// Requests are instructions of a warp that access memory. Sectors: 32 bytes of global memory each; wavefronts: of
/// shared memory. `ideal_`: what the same bytes need when they lie side by side, or in different banks.
struct Traffic {
  std::uint64_t requests = 0, sectors = 0, ideal_sectors = 0;
  std::uint64_t shared_requests = 0, wavefronts = 0, ideal_wavefronts = 0;
};

/// Whether anything is counted in this build.
bool available();

/// Every kernel once, by name, on aligned arrays.
std::map<std::string, Traffic> traffic(support::Number number);

}  // namespace memory_budget
