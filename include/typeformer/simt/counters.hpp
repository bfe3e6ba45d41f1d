/// Memory transactions per source line, counted by the race checker: facts of geometry, not of time.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "typeformer/simt/options.hpp"

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

/// What the warps' accesses of one kernel cost, over all its launches.
struct KernelCount {
  std::uint64_t requests = 0, sectors = 0, ideal_sectors = 0;               // global memory
  std::uint64_t shared_requests = 0, wavefronts = 0, ideal_wavefronts = 0;  // shared memory

  void add(const LineCount& line) {
    (line.shared ? shared_requests : requests) += line.instructions;
    (line.shared ? wavefronts : sectors) += line.actual;
    (line.shared ? ideal_wavefronts : ideal_sectors) += line.ideal;
  }
  double sector_ratio() const {
    return ideal_sectors ? static_cast<double>(sectors) / static_cast<double>(ideal_sectors) : 1.0;
  }
  double wavefront_ratio() const {
    return ideal_wavefronts ? static_cast<double>(wavefronts) / static_cast<double>(ideal_wavefronts) : 1.0;
  }
};

#if defined(TYPEFORMER_SIMT_RACECHECK)
/// Counts since the last reset, in order of the source lines. Empty unless options().counters was set before the
/// launches.
std::vector<LineCount> line_counts();
/// The same by the kernels' names, without namespaces and template arguments.
std::map<std::string, KernelCount> kernel_counts();
void reset_line_counts();
#else
inline std::vector<LineCount> line_counts() { return {}; }
inline std::map<std::string, KernelCount> kernel_counts() { return {}; }
inline void reset_line_counts() {}
#endif

/// Counts memory transactions from its construction to the end of its life; of launches that have run by then.
class CountMemory {
 public:
#if defined(TYPEFORMER_SIMT_RACECHECK)
  static constexpr bool available = true;
#else
  static constexpr bool available = false;  // all counts are 0
#endif
  CountMemory() : before_(std::exchange(options().counters, true)) { reset_line_counts(); }
  CountMemory(const CountMemory&) = delete;
  CountMemory& operator=(const CountMemory&) = delete;
  ~CountMemory() { options().counters = before_; }

  std::map<std::string, KernelCount> kernels() const { return kernel_counts(); }
  KernelCount kernel(const std::string& name) const {
    const auto counts = kernel_counts();
    const auto found = counts.find(name);
    return found == counts.end() ? KernelCount{} : found->second;
  }
  std::vector<LineCount> lines() const { return line_counts(); }

 private:
  bool before_;
};

}  // namespace typeformer
