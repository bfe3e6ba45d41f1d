// A block: its warps take turns until all have exited; barriers between them.
#include "machine.hpp"

namespace ptx {

void Block::start(Dim3 at) {
  index = at;
  const u32 warps = (threads + warp_size - 1) / warp_size;
  shared_.reset(code->dynamic_shared - shared_base + dynamic_bytes);
  for (const Code::Area& area : code->shared_variables) shared_.allow(area.offset - shared_base, area.size);
  shared_.allow(code->dynamic_shared - shared_base, dynamic_bytes);
  races.reset(options->check_races, warps, shared_.data.size());
  phase_barriers.clear();
  deliveries_.clear();
  threads_.assign(warps * warp_size, Thread{});
  local_.resize(warps * warp_size);
  for (Memory& memory : local_) {
    memory.reset(code->local_bytes);
    if (code->local_bytes > 16) memory.allow(16, code->local_bytes - 16);
  }
  warps_.resize(warps);
  for (u32 i = 0; i < warps; ++i)
    warps_[i].start(*this, *code, static_cast<int>(i), std::min(warp_size, threads - i * warp_size));
}

// --- barriers -------------------------------------------------------------------------------------------------------

void Block::arrive(Warp& warp) {
  arrived_[warp.barrier] += warp_size;
  races.release(static_cast<u32>(warp.id), arrived_clocks_[warp.barrier]);
  warp.at_barrier = false;
  ++warp.groups[0].at;
  warp.groups[0].waiting = false;
  ++progress;
}

/// Threads that a barrier waits for: what its instructions say, or all; 0 when no warp waits at it.
u32 Block::threads_wanted(u32 barrier) {
  u32 wanted = 0;
  const Warp* first = nullptr;
  const auto instruction_of = [&](const Warp& warp) -> const Instruction& {
    return code->instructions[static_cast<std::size_t>(warp.barrier_at)];
  };
  for (const Warp& warp : warps_) {
    if (!warp.at_barrier || warp.barrier != barrier) continue;
    if (warp.counted_barrier) wanted = warp.barrier_threads;
    if (!first) first = &warp;
    const Location &one = instruction_of(*first).statement->location, &other = instruction_of(warp).statement->location;
    if (!wanted && one.line && (one.line != other.line || one.file != other.file))
      warp.fail(instruction_of(warp), 0,
                "divergent barrier: warps wait at different source lines" + first->where() + warp.where());
  }
  if (!first || wanted) return wanted;
  for (const Warp& warp : warps_)
    if (!warp.alive)
      first->fail(instruction_of(*first), 0, "warp " + std::to_string(warp.id) + " exited before this block barrier");
  return static_cast<u32>(warps_.size()) * warp_size;
}

/// bar.red: all threads' predicates, as x says: their count, whether all hold, whether one does.
void Block::reduce(u32 barrier) {
  u32 count = 0, threads_there = 0;
  const auto each = [&](auto visit) {
    for (Warp& warp : warps_) {
      const Instruction& instruction = code->instructions[static_cast<std::size_t>(warp.barrier_at)];
      if (!warp.at_barrier || warp.barrier != barrier || instruction.written == 0) continue;
      for (const int lane : Lanes(warp.alive)) visit(warp, instruction, lane);
    }
  };
  each([&](Warp& warp, const Instruction& instruction, int lane) {
    count += (warp.get32(instruction.mask(), lane) & 1) != instruction.x[2];
    ++threads_there;
  });
  each([&](Warp& warp, const Instruction& instruction, int lane) {
    const u32 results[] = {count, count == threads_there, count != 0};
    warp.put(instruction.operands[0], lane, results[instruction.x[1]]);
  });
}

bool Block::release(u32 barrier) {
  const u32 wanted = threads_wanted(barrier);
  u32 arrived = arrived_[barrier];
  const auto here = [&](const Warp& warp) { return warp.at_barrier && warp.barrier == barrier; };
  for (const Warp& warp : warps_) arrived += here(warp) ? warp_size : 0;
  if (wanted == 0 || arrived < wanted) return false;
  reduce(barrier);
  Clock clock = std::move(arrived_clocks_[barrier]);
  arrived_clocks_[barrier].clear();
  for (const Warp& warp : warps_)
    if (here(warp)) races.release(static_cast<u32>(warp.id), clock);
  for (Warp& warp : warps_) {
    if (!here(warp)) continue;
    races.acquire(static_cast<u32>(warp.id), clock);
    races.order_lanes(static_cast<u32>(warp.id));
    warp.at_barrier = false;
    ++warp.groups[0].at;
    warp.groups[0].waiting = false;
  }
  arrived_[barrier] = 0;
  ++progress;
  return true;
}

bool Block::release_barriers() {
  bool any = false;
  for (u32 barrier = 0; barrier < 16; ++barrier) any |= release(barrier);
  return any;
}

// --- scheduling -----------------------------------------------------------------------------------------------------

void Block::deadlock() {
  std::string text = "deadlock: nothing can go on";
  const Warp* first = nullptr;
  for (const Warp& warp : warps_) {
    if (warp.groups.empty()) continue;
    if (!first) first = &warp;
    text += warp.where();
  }
  for (const auto& [address, barrier] : phase_barriers)
    text += "\n    mbarrier at " + hex(address) + ": phase " + std::to_string(barrier.phase) + ", pending arrivals " +
            std::to_string(barrier.pending) + ", pending bytes " + std::to_string(barrier.bytes);
  first->fail(code->instructions[static_cast<std::size_t>(first->groups[0].at)], first_lane(first->groups[0].mask),
              text);
}

void Block::check_steps() {
  if (statistics->warp_instructions <= options->max_steps) return;
  for (const Warp& warp : warps_)
    if (!warp.groups.empty())
      warp.fail(code->instructions[static_cast<std::size_t>(warp.groups[0].at)], first_lane(warp.groups[0].mask),
                "more than max_steps instructions" + warp.where());
}

/// Every warp that can run runs once; false when none is left.
bool Block::run_round(std::vector<std::size_t>& order, bool& ran) {
  bool living = false;
  if (options->seed) std::shuffle(order.begin(), order.end(), random);
  for (const std::size_t i : order) {
    Warp& warp = warps_[i];
    living |= !warp.groups.empty();
    if (warp.groups.empty() || warp.at_barrier) continue;
    ran = true;
    warp.run(options->seed ? 1 + random() % 200 : 100000);
    if (!warp.spun) ++progress;
  }
  return living;
}

void Block::run() {
  std::vector<std::size_t> order(warps_.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  for (int idle = 0;;) {
    const u64 before = progress;
    bool ran = false;
    if (!run_round(order, ran)) return;
    check_steps();
    if (release_barriers() || progress != before) {
      idle = 0;
      if (options->seed && random() % 4 == 0) land_delivery();
    } else if (!land_delivery() && (++idle >= 4 || !ran)) {
      deadlock();
    }
  }
}

u64 special_value(const Block& block, const std::string& name, u32 thread) {
  const auto component = [&](const char* prefix, Dim3 value, u64& result) {
    if (name.rfind(prefix, 0) != 0) return false;
    result = name.back() == 'x' ? value.x : name.back() == 'y' ? value.y : value.z;
    return true;
  };
  const u32 lane = thread % warp_size;
  const Dim3 size = block.size;
  const Dim3 thread_index{thread % size.x, thread / size.x % size.y, thread / size.x / size.y};
  u64 value = 0;
  if (component("%tid.", thread_index, value) || component("%ntid.", size, value) ||
      component("%ctaid.", block.index, value) || component("%nctaid.", block.grid, value))
    return value;
  if (name == "%laneid") return lane;
  if (name == "%warpid") return thread / warp_size;
  if (name == "%nwarpid") return (block.threads + warp_size - 1) / warp_size;
  if (name == "%lanemask_eq") return 1u << lane;
  if (name == "%lanemask_lt") return (1u << lane) - 1;
  if (name == "%lanemask_le") return static_cast<u32>((u64{2} << lane) - 1);
  if (name == "%lanemask_ge") return ~((1u << lane) - 1);
  if (name == "%lanemask_gt") return ~static_cast<u32>((u64{2} << lane) - 1);
  if (name == "%dynamic_smem_size") return block.dynamic_bytes;
  if (name == "%total_smem_size") return block.code->dynamic_shared - shared_base + block.dynamic_bytes;
  return name.rfind("%cluster_n", 0) == 0;  // each block is a cluster of its own; clocks stand still
}

}  // namespace ptx
