/// Run-time options of the host layer, read once from the environment.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <thread>

#include "typeformer/simt/fiber.hpp"

namespace typeformer::inline TYPEFORMER_ABI::simt {

/// When an asynchronous copy's bytes arrive: at the wait, at once, or either by chance. Late finds missing waits, early
/// finds buffers that are refilled while still read.
enum class Arrival : std::uint8_t { late, early, random };

/// How kernels run on the host. A program may change the fields between launches.
struct Options {
  /// Operating-system threads that run blocks (TYPEFORMER_SIMT_THREADS; 1 under the race checker).
  unsigned threads = std::max(1u, std::thread::hardware_concurrency());
  /// 0: threads, warps and blocks run in order; else their order is drawn from this seed (TYPEFORMER_SIMT_SEED).
  std::uint64_t seed = 0;
  /// TYPEFORMER_SIMT_COPIES = late | early | random.
  Arrival copies = Arrival::late;
  /// Shared memory starts as 0xFF bytes, NaN in every float format (TYPEFORMER_SIMT_POISON = 0 | 1).
  bool poison = true;
  /// Stop in the debugger where a fault happens, TYPEFORMER_SIMT_TRAP = 1.
  bool trap = false;
  /// Kernels may take pointers to ordinary host memory (TYPEFORMER_SIMT_HOST_POINTERS = 1).
  bool host_pointers = false;
  /// Count sectors and bank conflicts per source line, race checker only (TYPEFORMER_SIMT_COUNTERS = 1).
  bool counters = false;
  /// Bytes of a CUDA thread's stack (TYPEFORMER_SIMT_STACK, in KiB).
  std::size_t stack = std::size_t{fiber_default_stack};
  /// Shared memory that a block can have in total, bytes. 163 KiB is what compute capability 8.0 grants.
  std::size_t shared_limit = std::size_t{163} << 10;
  /// Shared memory that a block can have without cudaFuncSetAttribute, bytes.
  std::size_t shared_default = std::size_t{48} << 10;

  bool random() const { return seed != 0; }

  static Options from_environment() {
    Options result;
    const auto text = [](const char* name) {
      const char* value = std::getenv(name);
      return std::string_view(value ? value : "");
    };
    const auto number = [&](const char* name, auto& field) {
      using Field = std::remove_reference_t<decltype(field)>;
      if (const auto value = text(name); !value.empty())
        field = static_cast<Field>(std::strtoull(value.data(), nullptr, 0));
    };
    number("TYPEFORMER_SIMT_THREADS", result.threads);
    number("TYPEFORMER_SIMT_SEED", result.seed);
    number("TYPEFORMER_SIMT_POISON", result.poison);
    number("TYPEFORMER_SIMT_TRAP", result.trap);
    number("TYPEFORMER_SIMT_HOST_POINTERS", result.host_pointers);
    number("TYPEFORMER_SIMT_COUNTERS", result.counters);
    std::size_t kibibytes = 0;
    number("TYPEFORMER_SIMT_STACK", kibibytes);
    if (kibibytes) result.stack = kibibytes << 10;
    const auto copies = text("TYPEFORMER_SIMT_COPIES");
    if (copies == "early") result.copies = Arrival::early;
    if (copies == "random") result.copies = Arrival::random;
#if defined(TYPEFORMER_SIMT_RACECHECK)
    result.threads = 1;  // the checker's shadow memory has no locks; races between blocks are found by block number
#endif
    return result;
  }
};

// A plain global: a function-local static would cost a guard on the hot path.
inline Options global_options = Options::from_environment();

/// The options in force.
inline Options& options() { return global_options; }

}  // namespace typeformer
