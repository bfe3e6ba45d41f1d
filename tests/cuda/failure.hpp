/// Calls of CUDA and cuBLASLt that a phase of a model's life makes, failed in turn.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace failure {

/// What happened over all calls of a phase.
struct Report {
  std::uint64_t calls = 0;             ///< that the phase makes
  std::vector<std::string> functions;  ///< that were failed, each once
  std::vector<std::string> errors;     ///< what was said, each once
  std::vector<std::string> wrong;      ///< no error, a leak, or a wrong result afterwards
};
/// `phase`: "load", "prefill", "decode" or "training". `sticky`: every call after the failed one fails too, as after
/// an illegal access; nothing works afterwards then. `step`: 1 fails each call, n every nth.
Report fail_calls(const std::string& phase, bool sticky, std::uint64_t step);

}  // namespace failure
