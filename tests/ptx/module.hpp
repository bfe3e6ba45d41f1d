/// Runs PTX, the assembly that nvcc generates for the device, on the host's memory, and checks what it does: alignment,
/// bounds, values never written, races in shared memory, divergence, asynchronous copies. The whole public interface.
///
/// It is a model of the PTX ISA, not of a GPU: nothing here has been compared with one.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace ptx {

using u8 = std::uint8_t;
using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;
using s8 = std::int8_t;
using s16 = std::int16_t;
using s32 = std::int32_t;
using s64 = std::int64_t;

/// What a kernel did wrong, or text that cannot be run. The message names kernel, block, thread, PTX line and source
/// line.
struct Error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Dim3 {
  u32 x = 1, y = 1, z = 1;
};

/// When the bytes of an asynchronous copy arrive: at the wait, at once, or either by chance.
enum class Arrival : u8 { late, early, random };

struct Options {
  Arrival copies = Arrival::late;
  u64 seed = 0;                 ///< 0: warps run in order; else order and pace are drawn from it
  bool check_undefined = true;  ///< registers, shared and local memory that was never written
  bool check_races = true;      ///< in shared memory
  int ulp = 0;  ///< results of approximate instructions are off by up to as many units in the last place
  u32 shared_limit = 163 << 10;  ///< bytes of shared memory of a block
  u64 max_steps = u64{1} << 40;  ///< instructions of warps until a launch counts as endless
};

/// Ranges of global memory that kernels may touch.
class Buffers {
 public:
  struct Range {
    const u8* first = nullptr;
    u64 size = 0;
    std::string name;
  };

  void add(const void* first, u64 size, std::string name);
  void remove(const void* first);
  void clear() { ranges_.clear(); }
  /// The range that contains all `size` bytes, or -1.
  int find(const u8* address, u64 size) const;
  bool contains(std::size_t range, const u8* address, u64 size) const;
  /// Where an address lies relative to the nearest range, in words.
  std::string describe(const u8* address) const;

 private:
  std::vector<Range> ranges_;  // by address
};

/// What launches did so far.
struct Statistics {
  u64 warp_instructions = 0, lane_instructions = 0, blocks = 0;
  std::map<std::string, u64> instructions;  ///< warp instructions by name
};

/// What of an entry ran.
struct Coverage {
  std::string entry;
  std::map<int, bool> lines;           ///< PTX lines with instructions, and whether they ran
  std::vector<std::string> never_ran;  ///< source lines, `file:line`
};

/// A file of PTX.
class Module {
 public:
  explicit Module(std::string text);
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;
  ~Module();

  Options options;
  Statistics statistics;
  Buffers buffers;

  bool has(const std::string& entry) const;
  std::vector<std::string> entries() const;
  /// Decodes an entry without running it. Throws Error at the first instruction that is not known.
  void check(const std::string& entry);
  /// Of entries that were checked or run.
  std::vector<Coverage> coverage() const;
  /// A __device__ or __constant__ variable.
  void* variable(const std::string& name);

  using Arguments = std::span<const std::span<const std::byte>>;
  /// Runs the whole grid; each argument is the bytes of a parameter.
  void run(const std::string& entry, Dim3 grid, Dim3 block, u32 dynamic_shared, Arguments arguments);
  template <class... Values>
  void launch(const std::string& entry, Dim3 grid, Dim3 block, u32 dynamic_shared, const Values&... values) {
    const std::span<const std::byte> bytes[] = {std::as_bytes(std::span(&values, 1))..., {}};
    run(entry, grid, block, dynamic_shared, {bytes, sizeof...(Values)});
  }

 private:
  struct Implementation;
  std::unique_ptr<Implementation> implementation_;
};

/// The text of a file. Throws Error when it cannot be read.
std::string read_file(const std::string& path);

}  // namespace ptx
