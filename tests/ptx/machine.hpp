/// The machine: registers of 32 lanes, memory with a shadow, warps as groups of lanes with their own program counters.
#pragma once
#include <array>
#include <bit>
#include <cstring>
#include <deque>
#include <random>

#include "race.hpp"
#include "source.hpp"

namespace ptx {

/// Generic addresses: windows whose low bits are not zero, so that a truncated pointer is out of bounds.
constexpr u64 shared_window = 0x0100'0000'4000'0000, local_window = 0x0200'0000'4000'0000,
              parameter_window = 0x0300'0000'4000'0000, window_size = u64{1} << 30;
/// The first byte of shared memory: small wrong addresses fall below it.
constexpr u32 shared_base = 1024;
constexpr u32 warp_size = 32, all_lanes = ~0u;

enum class Space : u8 { generic, global, shared, local, parameter, constant };
/// What a byte of shared or local memory is: between variables, not yet written, written, target of a copy in flight.
enum class Shadow : u8 { gap, unwritten, written, in_flight };
/// How the scheduler treats an instruction: member ones wait for the lanes of a mask, their last operand.
enum class Kind : u8 { plain, branch, indexed_branch, exit, whole_warp, member, barrier, spin };

/// The lanes of a mask, lowest first: `for (const int lane : Lanes(mask))`.
class Lanes {
 public:
  explicit Lanes(u32 mask) : mask_(mask) {}
  struct Iterator {
    u32 mask;
    int operator*() const { return std::countr_zero(mask); }
    Iterator& operator++() {
      mask &= mask - 1;
      return *this;
    }
    bool operator!=(const Iterator& other) const { return mask != other.mask; }
  };
  Iterator begin() const { return {mask_}; }
  Iterator end() const { return {0}; }

 private:
  u32 mask_;
};
inline int first_lane(u32 mask) { return std::countr_zero(mask); }
inline std::string hex(u64 value) {
  char text[24];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(value));
  return text;
}

class Warp;
class Block;
struct Instruction;
using Execute = void (*)(Warp&, const Instruction&, u32 mask);

/// Where an operand's lanes lie: `width` bytes for each at `offset`, among the registers or the constants.
struct Slot {
  int offset = 0, number = -1;  // number: of the register; constants and special registers have none
  u8 width = 0;                 // 0: nowhere
  bool constant = false;
};

struct Instruction {
  static constexpr int max_operands = 18;
  Execute execute = nullptr;
  Kind kind = Kind::plain;
  bool guard_negated = false, flush = false, widths_differ = false, copies_definedness = false;
  Slot guard, operands[max_operands];
  int count = 0, written = 0;  // operands; the first `written` of them are results
  s64 displacement = 0, source_displacement = 0;
  int target = -1;
  u32 x[6] = {};  // what the decoder made of the modifiers
  std::vector<int> targets;
  const Statement* statement = nullptr;
  mutable std::size_t recent_buffer = 0;
  mutable u64 executed = 0, executed_before = 0;  // in this launch, in earlier ones

  const Slot& mask() const { return operands[count - 1]; }
};

/// A decoded entry.
struct Code {
  struct Area {
    u32 offset = 0, size = 0;
  };
  struct Special {
    std::string name;
    Slot slot;
  };
  const Function* function = nullptr;
  std::vector<Instruction> instructions;
  std::vector<u8> constants;
  std::vector<std::string> register_names;
  u32 register_bytes = 0, local_bytes = 0, dynamic_shared = shared_base, parameter_bytes = 0;
  std::vector<Area> shared_variables, parameters;
  std::vector<Special> specials;
};

/// Lanes at one instruction.
struct Group {
  int at = 0;
  u32 mask = 0;
  bool waiting = false;
};

class Warp {
 public:
  Block* block = nullptr;
  int id = 0;
  u32 initial = 0, alive = 0;  // lanes
  std::vector<Group> groups;
  const Instruction* lane_at[warp_size] = {};  // of a member instruction that executes: each lane's own copy of it
  bool at_barrier = false, counted_barrier = false, spun = false;
  int barrier_at = -1;
  u32 barrier = 0, barrier_threads = 0;

  void start(Block& on, const Code& code, int number, u32 lanes);

  template <class T>
  T* data(const Slot& slot) const {
    return reinterpret_cast<T*>((slot.constant ? const_cast<u8*>(constants_) : registers_) + slot.offset);
  }
  u64 get(const Slot& slot, int lane) const {
    switch (slot.width) {
      case 1:
        return data<u8>(slot)[lane];
      case 2:
        return data<u16>(slot)[lane];
      case 4:
        return data<u32>(slot)[lane];
      case 16:
        return data<u64>(slot)[2 * lane];
      default:
        return data<u64>(slot)[lane];
    }
  }
  u32 get32(const Slot& slot, int lane) const { return static_cast<u32>(get(slot, lane)); }
  void put(const Slot& slot, int lane, u64 value) {
    switch (slot.width) {
      case 0:
        break;
      case 1:
        data<u8>(slot)[lane] = static_cast<u8>(value);
        break;
      case 2:
        data<u16>(slot)[lane] = static_cast<u16>(value);
        break;
      case 4:
        data<u32>(slot)[lane] = static_cast<u32>(value);
        break;
      default:
        data<u64>(slot)[lane] = value;
    }
  }
  [[noreturn]] void fail(const Instruction& instruction, int lane, const std::string& what) const;

  /// Runs until every lane has exited, the warp waits at a block barrier, or the budget is spent.
  void run(u64 budget);
  std::string where() const;

 private:
  friend class Block;
  void check_defined(const Instruction& instruction, const Slot& slot, u32 mask) const;
  u32 guard_mask(const Instruction& instruction, u32 mask) const;
  void execute(const Instruction& instruction, u32 mask);
  void define(const Instruction& instruction, u32 mask);
  void merge();
  bool meet(Group& group);
  u32 gather(const Instruction& instruction, u32 members);
  void leave(u32 lanes);
  [[noreturn]] void stuck() const;
  bool advance_all_waiting();
  int choose(int& limit);
  bool run_group(std::size_t index, int limit, u64& budget);
  bool step(std::size_t index, u32 mask);
  bool branch(std::size_t index, u32 mask);
  bool branch_by_index(std::size_t index, u32 mask);
  bool exit(std::size_t index, u32 mask);
  bool wait(std::size_t index, u32 mask);
  bool spin(std::size_t index, u32 mask);

  u8* registers_ = nullptr;
  const u8* constants_ = nullptr;
  std::vector<u8> storage_;
  std::vector<u32> defined_;  // lanes in which a register has been written
  u32 turn_ = 0;              // above 0: another group than the one that is furthest behind gets the next quantum
  bool forced_ = false;
};

/// Bytes that an asynchronous copy brings from global to shared memory; beyond source_bytes they are zero.
struct Copy {
  u32 to = 0;
  const u8* from = nullptr;
  u32 bytes = 0, source_bytes = 0;
};
/// Copies that report to an mbarrier when they land.
struct Delivery {
  std::vector<Copy> copies;
  u32 barrier = 0;
  s64 bytes = 0;
  u32 arrivals = 0;
};
/// An mbarrier: arrivals and bytes that its current phase waits for.
struct PhaseBarrier {
  u32 count = 0, pending = 0, phase = 0;
  s64 bytes = 0;
  Clock clock;
};
struct Memory {
  std::vector<u8> data;
  std::vector<Shadow> shadow;

  void reset(u64 size);
  void allow(u64 offset, u64 size);  // a variable's place
};

class Block {
 public:
  const Code* code = nullptr;
  const Source* source = nullptr;
  const Options* options = nullptr;
  const Buffers* buffers = nullptr;
  Statistics* statistics = nullptr;
  Dim3 index, size, grid;
  u32 threads = 0, dynamic_bytes = 0;
  Races races;
  std::map<u32, PhaseBarrier> phase_barriers;
  std::mt19937_64 random{1};
  u64 progress = 0;  // grows with everything that may let somebody else go on

  /// Puts everything in its first state for the block of that index.
  void start(Dim3 at);
  void run();

  /// The host's address of `bytes` of memory that a lane reads or writes; fails when it may not.
  u8* access(Warp& warp, const Instruction& instruction, int lane, Space space, u64 address, u32 bytes, bool write);
  void set_parameters(std::vector<u8> bytes) { parameters_ = std::move(bytes); }

  void issue(Warp& warp, const Instruction& instruction, int lane, Copy copy);
  void commit(const Warp& warp, int lane);
  void wait_for_copies(const Warp& warp, int lane, std::size_t pending);
  bool has_copies(const Warp& warp, int lane);
  /// Later reports to the mbarrier: a bulk copy with its bytes, or a thread's copies so far with an arrival.
  void deliver(Delivery delivery);
  void start_bulk_copy(Warp& warp, const Instruction& instruction, int lane, const Copy& copy, u32 barrier);
  void deliver_copies_of(const Warp& warp, int lane, u32 barrier);
  /// Completes the mbarrier's phase when nothing is pending.
  void check_phase(PhaseBarrier& barrier);
  /// A warp that arrives at a named barrier without waiting.
  void arrive(Warp& warp);

 private:
  struct Thread {
    std::vector<Copy> open;
    std::deque<std::vector<Copy>> groups;
  };
  Thread& thread(const Warp& warp, int lane) {
    return threads_[static_cast<std::size_t>(warp.id * static_cast<int>(warp_size) + lane)];
  }
  u8* guarded(Warp& warp, const Instruction& instruction, int lane, Space space, u64 address, u32 bytes, bool write);
  u8* global(Warp& warp, const Instruction& instruction, int lane, u64 address, u32 bytes, bool write);
  bool draw_early() {
    return options->copies == Arrival::early || (options->copies == Arrival::random && random() % 2);
  }
  void land(const Copy& copy);
  void land_by(const Copy& copy, const Warp& warp, int lane);
  bool land_delivery();
  bool release_barriers();
  bool release(u32 barrier);
  u32 threads_wanted(u32 barrier);
  void reduce(u32 barrier);
  bool run_round(std::vector<std::size_t>& order, bool& ran);
  [[noreturn]] void deadlock();
  void check_steps();

  Memory shared_;
  std::vector<Memory> local_;
  std::vector<u8> parameters_;
  std::vector<Warp> warps_;
  std::vector<Thread> threads_;
  std::vector<Delivery> deliveries_;
  u32 arrived_[16] = {};  // threads at named barriers that do not wait
  Clock arrived_clocks_[16];
};

/// The value of a special register in one thread.
u64 special_value(const Block& block, const std::string& name, u32 thread);

}  // namespace ptx
