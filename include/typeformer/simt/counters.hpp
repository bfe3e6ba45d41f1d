/// Memory transactions per source line, counted by the race checker: facts of geometry, not of time.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "typeformer/core/annotate.hpp"

namespace typeformer::inline TYPEFORMER_ABI::simt {

/// What the warps' accesses of one source line cost. Global memory: distinct 32-byte sectors; shared memory: wavefronts
/// (accesses to different words of one bank need one each). `ideal` is what the same bytes would need, densely packed.
struct LineCount {
  std::string where;  // "file.cuh:12", inlined callers after " < "
  bool shared = false, store = false;
  unsigned bytes = 0;  // per lane
  std::uint64_t instructions = 0, lanes = 0, actual = 0, ideal = 0;

  double ratio() const { return ideal ? static_cast<double>(actual) / static_cast<double>(ideal) : 1.0; }
};

#if defined(TYPEFORMER_SIMT_RACECHECK)
/// Counts since the last reset, in order of the source lines. Empty unless options().counters was set before the
/// launches.
std::vector<LineCount> line_counts();
void reset_line_counts();
#endif

}  // namespace typeformer
