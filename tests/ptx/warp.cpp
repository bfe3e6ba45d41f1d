// How a warp runs. Its lanes form groups, each at one instruction; the group that is furthest behind runs, so that
// lanes catch up and merge. Now and then another group gets a quantum, so that waiting for a lane of the own warp ends.
#include <climits>

#include "machine.hpp"

namespace ptx {

void Warp::start(Block& on, const Code& code, int number, u32 lanes) {
  block = &on;
  id = number;
  storage_.resize(code.register_bytes + 64);
  const auto first = reinterpret_cast<std::uintptr_t>(storage_.data());
  registers_ = storage_.data() + ((first + 63) / 64 * 64 - first);
  constants_ = code.constants.data();
  defined_.assign(code.register_names.size(), 0);
  initial = alive = lanes == warp_size ? all_lanes : (1u << lanes) - 1;
  groups.assign(1, Group{0, initial, false});
  at_barrier = spun = false;
  turn_ = 0;
  for (const Code::Special& special : code.specials)
    for (u32 lane = 0; lane < warp_size; ++lane)
      put(special.slot, static_cast<int>(lane),
          special_value(on, special.name, static_cast<u32>(number) * warp_size + lane));
}

// --- reports --------------------------------------------------------------------------------------------------------

void Warp::fail(const Instruction& instruction, int lane, const std::string& what) const {
  const u32 thread = static_cast<u32>(id * static_cast<int>(warp_size) + lane);
  const Dim3 &size = block->size, &index = block->index;
  const auto triple = [](u32 x, u32 y, u32 z) {
    return "(" + std::to_string(x) + "," + std::to_string(y) + "," + std::to_string(z) + ")";
  };
  const Statement& statement = *instruction.statement;
  throw Error("ptx: " + what + "\n  kernel " + block->code->function->name + "\n  block " +
              triple(index.x, index.y, index.z) + " thread " +
              triple(thread % size.x, thread / size.x % size.y, thread / size.x / size.y) + " PTX line " +
              std::to_string(statement.line) + ": " + statement.op + block->source->describe(statement.location));
}

std::string Warp::where() const {
  std::string text;
  for (const Group& group : groups) {
    const Statement& statement = *block->code->instructions[static_cast<std::size_t>(group.at)].statement;
    text += "\n    warp " + std::to_string(id) + " lanes " + hex(group.mask) + " at line " +
            std::to_string(statement.line) + ": " + statement.op + block->source->describe(statement.location);
  }
  return text;
}

void Warp::stuck() const {
  const auto& instructions = block->code->instructions;
  const Instruction& instruction = instructions[static_cast<std::size_t>(groups[0].at)];
  const int lane = first_lane(groups[0].mask);
  std::string text = "the warp cannot go on: lanes wait at different places";
  if (groups.size() == 1 && instruction.kind == Kind::member)
    text = "lanes of the member mask " + hex(get(instruction.mask(), lane)) + " have not arrived";
  else if (groups.size() == 1)
    text = "lanes " + hex(initial & ~groups[0].mask) + " exited before this " + instruction.statement->op;
  else
    for (const Group& group : groups)
      if (instructions[static_cast<std::size_t>(group.at)].kind == Kind::barrier)
        text = "divergent barrier: part of a warp arrives";
  fail(instruction, lane, text + where());
}

// --- one instruction ------------------------------------------------------------------------------------------------

void Warp::check_defined(const Instruction& instruction, const Slot& slot, u32 mask) const {
  if (slot.number < 0) return;
  const auto number = static_cast<std::size_t>(slot.number);
  if (const u32 missing = mask & ~defined_[number])
    fail(instruction, first_lane(missing),
         "reads a register that was never written (" + block->code->register_names[number] + ")");
}

u32 Warp::guard_mask(const Instruction& instruction, u32 mask) const {
  if (instruction.guard.width == 0) return mask;
  if (block->options->check_undefined) check_defined(instruction, instruction.guard, mask);
  const u8* predicate = data<u8>(instruction.guard);
  u32 set = 0;
  for (u32 lane = 0; lane < warp_size; ++lane) set |= static_cast<u32>(predicate[lane] & 1) << lane;
  return (instruction.guard_negated ? ~set : set) & mask;
}

void Warp::define(const Instruction& instruction, u32 mask) {
  for (int i = 0; i < instruction.written; ++i)
    if (const int number = instruction.operands[i].number; number >= 0)
      defined_[static_cast<std::size_t>(number)] |= mask;
}

void Warp::execute(const Instruction& instruction, u32 mask) {
  const bool moves = instruction.copies_definedness;  // a move may copy what nobody reads in the end
  if (block->options->check_undefined && !moves)
    for (int i = instruction.written; i < instruction.count; ++i)
      check_defined(instruction, instruction.operands[i], mask);
  instruction.execute(*this, instruction, mask);
  if (!moves) {
    define(instruction, mask);
  } else if (instruction.operands[0].number >= 0) {
    const int from = instruction.operands[1].number;
    u32& to = defined_[static_cast<std::size_t>(instruction.operands[0].number)];
    to = (to & ~mask) | ((from < 0 ? all_lanes : defined_[static_cast<std::size_t>(from)]) & mask);
  }
  ++instruction.executed;
  block->statistics->lane_instructions += static_cast<u64>(std::popcount(mask));
}

// --- instructions that wait for lanes -------------------------------------------------------------------------------

/// Waiting lanes that name the same members at the same operation, wherever they are; notes each one's instruction.
u32 Warp::gather(const Instruction& instruction, u32 members) {
  u32 present = 0;
  for (const Group& group : groups) {
    if (!group.waiting) continue;
    const Instruction& other = block->code->instructions[static_cast<std::size_t>(group.at)];
    if (other.kind != Kind::member) continue;
    if (&other != &instruction && other.statement->op != instruction.statement->op) continue;
    for (const int lane : Lanes(group.mask & members))
      if (get32(other.mask(), lane) == members) {
        present |= 1u << lane;
        lane_at[lane] = &other;
      }
  }
  return present;
}

/// Lets lanes that have met go on.
void Warp::leave(u32 lanes) {
  for (std::size_t i = 0, count = groups.size(); i < count; ++i) {
    if (!groups[i].waiting || !(groups[i].mask & lanes)) continue;
    const u32 going = groups[i].mask & lanes;
    if (going == groups[i].mask) {
      ++groups[i].at;
      groups[i].waiting = false;
    } else {
      groups[i].mask &= ~going;
      groups.push_back({groups[i].at + 1, going, false});
    }
  }
}

/// Executes shfl.sync and the like when all living lanes of a member mask have arrived. Lanes of one group may belong
/// to several disjoint masks: tiles of a warp.
bool Warp::meet(Group& group) {
  const Instruction& instruction = block->code->instructions[static_cast<std::size_t>(group.at)];
  const std::string& op = instruction.statement->op;
  u32 seen = 0;
  for (const int lane : Lanes(group.mask)) {
    if (seen >> lane & 1) continue;
    if (block->options->check_undefined) check_defined(instruction, instruction.mask(), 1u << lane);
    const u32 members = get32(instruction.mask(), lane);
    seen |= members;
    if (!(members >> lane & 1))
      fail(instruction, lane, op + ": the lane is not in its own member mask " + hex(members));
    if (members & ~initial)
      fail(instruction, lane, op + ": the member mask " + hex(members) + " names lanes that do not exist");
    const u32 present = gather(instruction, members);
    if (members & alive & ~present) continue;
    for (const int one : Lanes(present))
      for (int i = lane_at[one]->written; i < lane_at[one]->count && block->options->check_undefined; ++i)
        check_defined(*lane_at[one], lane_at[one]->operands[i], 1u << one);
    instruction.execute(*this, instruction, present);
    for (const int one : Lanes(present)) {
      define(*lane_at[one], 1u << one);
      if (lane_at[one] != &instruction) ++lane_at[one]->executed;
    }
    ++instruction.executed;
    block->statistics->lane_instructions += static_cast<u64>(std::popcount(present));
    if (instruction.count == 1) block->races.order_lanes(static_cast<u32>(id));  // bar.warp.sync
    leave(present);
    return true;
  }
  return false;
}

// --- control --------------------------------------------------------------------------------------------------------
// Each of these moves groups[index] on and tells whether it may simply continue.

bool Warp::branch(std::size_t index, u32 mask) {
  Group& group = groups[index];
  const Instruction& instruction = block->code->instructions[static_cast<std::size_t>(group.at)];
  ++instruction.executed;
  if (mask == group.mask) {
    group.at = instruction.target;
  } else {
    ++group.at;
    if (mask) {
      group.mask &= ~mask;
      groups.push_back({instruction.target, mask, false});
      return false;
    }
  }
  return forced_ || groups.size() == 1;
}

bool Warp::branch_by_index(std::size_t index, u32 mask) {
  const Group group = groups[index];
  const Instruction& instruction = block->code->instructions[static_cast<std::size_t>(group.at)];
  ++instruction.executed;
  std::map<int, u32> to;
  for (const int lane : Lanes(mask)) {
    const u64 choice = get(instruction.operands[0], lane);
    if (choice >= instruction.targets.size()) fail(instruction, lane, "branch index out of range");
    to[instruction.targets[choice]] |= 1u << lane;
  }
  groups.erase(groups.begin() + static_cast<std::ptrdiff_t>(index));
  if (const u32 rest = group.mask & ~mask) groups.push_back({group.at + 1, rest, false});
  for (const auto& [target, lanes] : to) groups.push_back({target, lanes, false});
  return false;
}

bool Warp::exit(std::size_t index, u32 mask) {
  Group& group = groups[index];
  const Instruction& instruction = block->code->instructions[static_cast<std::size_t>(group.at)];
  for (const int lane : Lanes(mask))
    if (block->has_copies(*this, lane))
      fail(instruction, lane, "the thread exits with asynchronous copies that were never waited for");
  alive &= ~mask;
  group.mask &= ~mask;
  ++block->progress;
  if (mask) ++instruction.executed;
  if (group.mask)
    ++group.at;
  else
    groups.erase(groups.begin() + static_cast<std::ptrdiff_t>(index));
  return false;
}

bool Warp::wait(std::size_t index, u32 mask) {
  const Instruction& instruction = block->code->instructions[static_cast<std::size_t>(groups[index].at)];
  if (!mask) {
    ++groups[index].at;
    return true;
  }
  if (const u32 rest = groups[index].mask & ~mask) {
    if (instruction.kind == Kind::whole_warp)
      fail(instruction, first_lane(rest),
           instruction.statement->op + " under a predicate that differs within the warp");
    groups[index].mask = mask;
    groups.push_back({groups[index].at + 1, rest, false});
  } else if (instruction.kind == Kind::whole_warp && mask == initial) {
    execute(instruction, mask);
    ++groups[index].at;
    return true;
  }
  groups[index].waiting = true;
  if (instruction.kind != Kind::member || groups.size() > 1) return false;
  if (!meet(groups[index])) stuck();
  return groups.size() == 1;
}

/// A poll of an mbarrier that found nothing new ends the warp's turn.
bool Warp::spin(std::size_t index, u32 mask) {
  const u64 before = block->progress;
  if (mask) execute(block->code->instructions[static_cast<std::size_t>(groups[index].at)], mask);
  ++groups[index].at;
  return !(mask && spun && before == block->progress);
}

bool Warp::step(std::size_t index, u32 mask) {
  Group& group = groups[index];
  const Instruction& instruction = block->code->instructions[static_cast<std::size_t>(group.at)];
  switch (instruction.kind) {
    case Kind::plain:
      if (mask) execute(instruction, mask);
      ++group.at;
      return true;
    case Kind::branch:
      return branch(index, mask);
    case Kind::indexed_branch:
      return branch_by_index(index, mask);
    case Kind::exit:
      return exit(index, mask);
    case Kind::spin:
      return spin(index, mask);
    default:
      return wait(index, mask);
  }
}

// --- scheduling -----------------------------------------------------------------------------------------------------

void Warp::merge() {
  for (std::size_t i = 0; i < groups.size(); ++i)
    for (std::size_t j = i + 1; j < groups.size();) {
      if (groups[i].at != groups[j].at) {
        ++j;
        continue;
      }
      groups[i].mask |= groups[j].mask;
      groups[i].waiting = false;
      groups.erase(groups.begin() + static_cast<std::ptrdiff_t>(j));
    }
}

/// The group that runs next, -1 when all wait; limit: where it meets the next one.
int Warp::choose(int& limit) {
  int best = -1;
  limit = INT_MAX;
  std::vector<int> ready;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    if (groups[i].waiting) continue;
    ready.push_back(static_cast<int>(i));
    if (best < 0 || groups[i].at < groups[static_cast<std::size_t>(best)].at) best = static_cast<int>(i);
  }
  if (best < 0) return best;
  if (forced_) return ready[turn_++ % ready.size()];
  for (const int other : ready)
    if (other != best) limit = std::min(limit, groups[static_cast<std::size_t>(other)].at);
  return best;
}

/// False when the warp arrives at a block barrier.
bool Warp::advance_all_waiting() {
  const auto& instructions = block->code->instructions;
  for (Group& group : groups)
    if (instructions[static_cast<std::size_t>(group.at)].kind == Kind::member && meet(group)) {
      ++block->progress;
      return true;
    }
  const Instruction& instruction = instructions[static_cast<std::size_t>(groups[0].at)];
  const bool whole = groups.size() == 1 && groups[0].mask == alive && alive == initial;
  if (!whole || instruction.kind != Kind::barrier) stuck();
  at_barrier = true;
  barrier_at = groups[0].at;
  execute(instruction, alive);
  return !at_barrier;
}

/// Runs groups[index] until it must stop; false when the warp's turn is over.
bool Warp::run_group(std::size_t index, int limit, u64& budget) {
  constexpr u64 patience = 2000;  // for lanes that may wait for other lanes of the warp
  u64 quantum = groups.size() > 1 ? std::min(budget, patience) : budget;
  budget -= quantum;
  for (; quantum > 0; --quantum) {
    const Instruction& instruction = block->code->instructions[static_cast<std::size_t>(groups[index].at)];
    ++block->statistics->warp_instructions;
    const bool go_on = step(index, guard_mask(instruction, groups[index].mask));
    if (instruction.kind == Kind::spin && !go_on) break;
    if (!go_on || groups[index].at >= limit) {
      budget += quantum - 1;
      return true;
    }
  }
  if (groups.size() == 1)
    turn_ = 0;
  else if (!forced_)  // else choose() has moved it on: every group gets its turn
    ++turn_;
  return false;
}

void Warp::run(u64 budget) {
  spun = false;
  forced_ = turn_ != 0;
  while (!groups.empty()) {
    if (groups.size() > 1) merge();
    int limit = INT_MAX;
    const int chosen = groups.size() == 1 && !groups[0].waiting ? 0 : choose(limit);
    if (chosen < 0) {
      if (!advance_all_waiting()) return;
      continue;
    }
    if (!run_group(static_cast<std::size_t>(chosen), limit, budget)) return;
    if (forced_) {
      forced_ = false;
      turn_ = 0;
    }
  }
}

}  // namespace ptx
