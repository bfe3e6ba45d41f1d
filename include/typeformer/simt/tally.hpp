/// Counts since a moment: calls of the runtime, kernels, copies. For tests that hold budgets, on the host only.
#pragma once
#include "typeformer/simt/kernel_name.hpp"
#include "typeformer/simt/streams.hpp"

namespace typeformer::inline TYPEFORMER_ABI::simt {

/// What has been called and queued since the object was made, by all threads. A graph's operations count at every
/// launch of the graph.
class Tally {
 public:
  Tally() : before_(now()) {}

  /// Calls of the runtime and of cuBLASLt whose names begin with `name`; a kernel launch is cudaLaunchKernel. As in
  /// FailCall, questions for the last error and for texts do not count.
  std::uint64_t calls(std::string_view name = "") const {
    std::uint64_t result = 0;
    for (const auto& [called, count] : now().calls)
      if (called.starts_with(name)) result += count - of(before_.calls, called);
    return result;
  }
  /// Kernels, launched or replayed.
  std::uint64_t launches() const {
    std::uint64_t result = 0;
    for (const auto& [kernel, count] : now().launches) result += count - of(before_.launches, kernel);
    return result;
  }
  /// Those of a function with this name: without namespace and template arguments.
  std::uint64_t launches(std::string_view kernel_name) const {
    const auto by_name = kernels();
    const auto found = by_name.find(std::string(kernel_name));
    return found == by_name.end() ? 0 : found->second;
  }
  /// Launches by the kernels' names.
  std::map<std::string, std::uint64_t> kernels() const {
    std::map<std::string, std::uint64_t> result;
    for (const auto& [kernel, count] : now().launches)
      if (const std::uint64_t more = count - of(before_.launches, kernel)) result[kernel_name(kernel)] += more;
    return result;
  }
  std::uint64_t copies() const { return now().copies - before_.copies; }
  std::uint64_t copied_bytes() const { return now().copied_bytes - before_.copied_bytes; }
  std::uint64_t fills() const { return now().fills - before_.fills; }
  /// Matrix products of cuBLASLt.
  std::uint64_t products() const { return now().products - before_.products; }
  /// Launches of graphs.
  std::uint64_t replays() const { return now().replays - before_.replays; }
  /// Successful and failed calls that allocate device memory.
  std::uint64_t allocations() const { return calls("cudaMalloc") - calls("cudaMallocHost"); }
  /// Calls that make the host wait.
  std::uint64_t waits() const {
    std::uint64_t result = 0;
    for (const char* name : {"cudaStreamSynchronize", "cudaDeviceSynchronize", "cudaEventSynchronize", "cudaFree"})
      result += calls(name);
    return result - calls("cudaFreeAsync") + calls("cudaMemcpy") - calls("cudaMemcpyAsync") -
           calls("cudaMemcpy2DAsync");
  }

 private:
  static Totals now() {
    const std::lock_guard lock(runtime().mutex);
    return runtime().totals;
  }
  template <class Map>
  static std::uint64_t of(const Map& map, const typename Map::key_type& key) {
    const auto found = map.find(key);
    return found == map.end() ? 0 : found->second;
  }
  Totals before_;
};

}  // namespace typeformer
