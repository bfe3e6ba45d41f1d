// What lanes of a mask or all warps of a block do together.
#include "decoder.hpp"

namespace ptx {
namespace {

/// The operand of a lane's own copy of the instruction.
const Slot& slot_of(const Warp& warp, int lane, int index) { return warp.lane_at[lane]->operands[index]; }
/// The first operand that is read.
const Slot& source_of(const Warp& warp, int lane, int after = 0) {
  return slot_of(warp, lane, warp.lane_at[lane]->written + after);
}

// --- shuffles -------------------------------------------------------------------------------------------------------

enum class Shuffle : u32 { up, down, butterfly, index };

/// The lane that `lane` reads, and whether it is in range (else its own).
int shuffle_source(Shuffle mode, int lane, u32 b, u32 c, bool& in_range) {
  const int by = static_cast<int>(b & 31), segment = static_cast<int>(c >> 8 & 31), clamp = static_cast<int>(c & 31);
  const int first = lane & segment, last = first | (clamp & ~segment);
  int source = lane;
  switch (mode) {
    case Shuffle::up:
      source = lane - by;
      in_range = source >= last;
      break;
    case Shuffle::down:
      source = lane + by;
      in_range = source <= last;
      break;
    case Shuffle::butterfly:
      source = lane ^ by;
      in_range = source <= last;
      break;
    case Shuffle::index:
      source = first | (by & ~segment);
      in_range = source <= last;
      break;
  }
  return in_range ? source : lane;
}

void execute_shuffle(Warp& warp, const Instruction& instruction, u32 present) {
  u32 values[warp_size] = {};
  for (const int lane : Lanes(present)) values[lane] = warp.get32(source_of(warp, lane), lane);
  for (const int lane : Lanes(present)) {
    bool in_range = false;
    const int source =
        shuffle_source(static_cast<Shuffle>(instruction.x[0]), lane, warp.get32(source_of(warp, lane, 1), lane),
                       warp.get32(source_of(warp, lane, 2), lane), in_range);
    if (!(present >> source & 1))
      warp.fail(*warp.lane_at[lane], lane,
                "the shuffle reads lane " + std::to_string(source) + ", which does not take part (mask " +
                    hex(present) + ")");
    warp.put(slot_of(warp, lane, 0), lane, values[source]);
    if (warp.lane_at[lane]->written > 1) warp.put(slot_of(warp, lane, 1), lane, in_range);
  }
}

// --- votes and reductions -------------------------------------------------------------------------------------------

enum class Vote : u32 { all, any, uniform, ballot };

void execute_vote(Warp& warp, const Instruction& instruction, u32 present) {
  u32 ballot = 0;
  for (const int lane : Lanes(present))
    if ((warp.get32(source_of(warp, lane), lane) & 1) != warp.lane_at[lane]->x[1]) ballot |= 1u << lane;
  const u32 results[] = {ballot == present, ballot != 0, ballot == present || ballot == 0, ballot};
  for (const int lane : Lanes(present)) warp.put(slot_of(warp, lane, 0), lane, results[instruction.x[0]]);
}

void execute_match(Warp& warp, const Instruction& instruction, u32 present) {
  const bool all = instruction.x[0];
  for (const int lane : Lanes(present)) {
    u32 equal = 0;
    for (const int other : Lanes(present))
      if (warp.get(source_of(warp, other), other) == warp.get(source_of(warp, lane), lane)) equal |= 1u << other;
    if (warp.lane_at[lane]->written > 1) warp.put(slot_of(warp, lane, 1), lane, equal == present);
    warp.put(slot_of(warp, lane, 0), lane, all && equal != present ? 0 : equal);
  }
}

enum class Reduction : u32 { add, min, max, bit_and, bit_or, bit_xor };

u32 reduce(Reduction operation, bool is_signed, u32 a, u32 b) {
  const bool less = is_signed ? static_cast<s32>(b) < static_cast<s32>(a) : b < a;
  switch (operation) {
    case Reduction::add:
      return a + b;
    case Reduction::min:
      return less ? b : a;
    case Reduction::max:
      return less ? a : b;
    case Reduction::bit_and:
      return a & b;
    case Reduction::bit_or:
      return a | b;
    default:
      return a ^ b;
  }
}
void execute_reduction(Warp& warp, const Instruction& instruction, u32 present) {
  const int first = first_lane(present);
  u32 result = warp.get32(source_of(warp, first), first);
  for (const int lane : Lanes(present & (present - 1)))
    result = reduce(static_cast<Reduction>(instruction.x[0]), instruction.x[1], result,
                    warp.get32(source_of(warp, lane), lane));
  for (const int lane : Lanes(present)) warp.put(slot_of(warp, lane, 0), lane, result);
}

void execute_election(Warp& warp, const Instruction&, u32 present) {
  const int chosen = first_lane(present);
  for (const int lane : Lanes(present)) {
    warp.put(slot_of(warp, lane, 0), lane, static_cast<u64>(chosen));
    warp.put(slot_of(warp, lane, 1), lane, lane == chosen);
  }
}

template <class Choice>
u32 choose(const Decoder& d, const std::vector<std::pair<const char*, Choice>>& names) {
  for (const auto& [name, choice] : names)
    if (d.has(name)) return static_cast<u32>(choice);
  d.fail("unknown form");
}

}  // namespace

void decode_shuffle(Decoder& d) {
  d.expect_operands(5, 5);
  d.allow({"up", "down", "bfly", "idx"});
  d.instruction.kind = Kind::member;
  d.instruction.x[0] = choose<Shuffle>(
      d, {{"up", Shuffle::up}, {"down", Shuffle::down}, {"bfly", Shuffle::butterfly}, {"idx", Shuffle::index}});
  d.write_with_predicate(d.operand(0));
  for (std::size_t i = 1; i < 5; ++i) d.read(d.operand(i), 4);
  d.instruction.execute = execute_shuffle;
}
void decode_vote(Decoder& d) {
  d.expect_operands(3, 3);
  d.allow({"all", "any", "uni", "ballot"});
  d.instruction.kind = Kind::member;
  d.instruction.x[0] =
      choose<Vote>(d, {{"all", Vote::all}, {"any", Vote::any}, {"uni", Vote::uniform}, {"ballot", Vote::ballot}});
  d.write(d.operand(0), d.has("ballot") ? 4 : 1);
  d.instruction.x[1] = d.read_predicate(d.operand(1));
  d.read(d.operand(2), 4);
  d.instruction.execute = execute_vote;
}
void decode_match(Decoder& d) {
  d.expect_operands(3, 3);
  d.allow({"any", "all"});
  d.instruction.kind = Kind::member;
  d.instruction.x[0] = d.has("all");
  d.write_with_predicate(d.operand(0));
  d.read(d.operand(1), d.type().bytes);
  d.read(d.operand(2), 4);
  d.instruction.execute = execute_match;
}
void decode_warp_reduction(Decoder& d) {
  d.expect_operands(3, 3);
  d.allow({"add", "min", "max", "and", "or", "xor"});
  if (d.type().is_float()) d.fail("floats are not supported");
  d.instruction.kind = Kind::member;
  d.instruction.x[0] = choose<Reduction>(d, {{"add", Reduction::add},
                                             {"min", Reduction::min},
                                             {"max", Reduction::max},
                                             {"and", Reduction::bit_and},
                                             {"or", Reduction::bit_or},
                                             {"xor", Reduction::bit_xor}});
  d.instruction.x[1] = d.type().is_signed();
  d.write(d.operand(0), 4);
  d.read(d.operand(1), 4);
  d.read(d.operand(2), 4);
  d.instruction.execute = execute_reduction;
}
void decode_election(Decoder& d) {
  d.expect_operands(2, 2);
  if (d.operand(0).kind != Operand::Kind::pair) d.fail("unknown form");
  d.instruction.kind = Kind::member;
  d.write_with_predicate(d.operand(0));
  d.read(d.operand(1), 4);
  d.instruction.execute = execute_election;
}
void decode_active_mask(Decoder& d) {
  d.write(d.operand(0), 4);
  d.instruction.execute = [](Warp& warp, const Instruction& instruction, u32 mask) {
    for (const int lane : Lanes(mask)) warp.put(instruction.operands[0], lane, mask);
  };
}

// --- barriers -------------------------------------------------------------------------------------------------------

namespace {

/// x of a barrier: 0 sync, 1 arrive, 2 reduction; what is reduced (Block::reduce); whether the predicate is negated;
/// where the barrier's number is; whether a number of threads follows.
enum BarrierField { barrier_kind, barrier_reduction, barrier_negated, barrier_number, barrier_counted };

void execute_barrier(Warp& warp, const Instruction& instruction, u32 mask) {
  const int lane = first_lane(mask);
  const Slot* number = &instruction.operands[instruction.x[barrier_number]];
  warp.barrier = warp.get32(number[0], lane);
  if (warp.barrier > 15) warp.fail(instruction, lane, "barrier number above 15");
  warp.counted_barrier = instruction.x[barrier_counted];
  if (warp.counted_barrier) warp.barrier_threads = warp.get32(number[1], lane);
  if (instruction.x[barrier_kind] == 1) warp.block->arrive(warp);
}

}  // namespace

void decode_barrier(Decoder& d) {
  Instruction& instruction = d.instruction;
  if (d.has("warp")) {  // bar.warp.sync
    instruction.kind = Kind::member;
    d.read(d.operand(0), 4);
    instruction.execute = [](Warp&, const Instruction&, u32) {};
    return;
  }
  if (d.has("cluster")) d.fail("barriers of clusters are not supported");
  d.allow({"arrive", "red", "popc", "and", "or"});
  const bool reduces = d.has("red");
  instruction.kind = Kind::barrier;
  instruction.x[barrier_kind] = d.has("arrive") ? 1 : reduces ? 2 : 0;
  std::size_t next = 0;
  if (reduces) {
    instruction.x[barrier_reduction] = d.has("popc") ? 0 : d.has("and") ? 1 : 2;
    d.write(d.operand(next++), d.has("popc") ? 4 : 1);
  }
  instruction.x[barrier_number] = static_cast<u32>(instruction.count);
  d.read(d.operand(next++), 4);
  instruction.x[barrier_counted] = d.operand_count() - next > reduces;
  if (instruction.x[barrier_counted]) d.read(d.operand(next++), 4);
  if (reduces) instruction.x[barrier_negated] = d.read_predicate(d.operand(next));
  instruction.execute = execute_barrier;
}

}  // namespace ptx
