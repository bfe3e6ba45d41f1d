// cp.async, cp.async.bulk to shared memory, and mbarriers.
#include "decoder.hpp"

namespace ptx {
namespace {

/// The mbarrier at an operand's address.
PhaseBarrier& barrier_at(Warp& warp, const Instruction& instruction, int operand, int lane) {
  const auto address =
      static_cast<u32>(address_of(warp, instruction.operands[operand], instruction.displacement, lane));
  const auto found = warp.block->phase_barriers.find(address);
  if (found == warp.block->phase_barriers.end())
    warp.fail(instruction, lane, "no initialized mbarrier at " + hex(address));
  return found->second;
}

// --- copies of threads ----------------------------------------------------------------------------------------------

void execute_commit(Warp& warp, const Instruction&, u32 mask) {
  for (const int lane : Lanes(mask)) warp.block->commit(warp, lane);
}
void execute_wait_all(Warp& warp, const Instruction&, u32 mask) {
  for (const int lane : Lanes(mask)) {
    warp.block->commit(warp, lane);
    warp.block->wait_for_copies(warp, lane, 0);
  }
}
void execute_wait_group(Warp& warp, const Instruction& instruction, u32 mask) {
  for (const int lane : Lanes(mask)) warp.block->wait_for_copies(warp, lane, instruction.x[0]);
}
void execute_copy_arrival(Warp& warp, const Instruction& instruction, u32 mask) {
  for (const int lane : Lanes(mask)) {
    PhaseBarrier& barrier = barrier_at(warp, instruction, 0, lane);
    if (!instruction.x[0]) ++barrier.pending;
    warp.block->deliver_copies_of(
        warp, lane, static_cast<u32>(address_of(warp, instruction.operands[0], instruction.displacement, lane)));
  }
}

/// x: bytes of the copy, whether a number of source bytes follows.
void execute_copy(Warp& warp, const Instruction& instruction, u32 mask) {
  const u32 bytes = instruction.x[0];
  for (const int lane : Lanes(mask)) {
    const u32 source_bytes = instruction.x[1] ? warp.get32(instruction.operands[2], lane) : bytes;
    if (source_bytes > bytes)
      warp.fail(instruction, lane,
                "cp.async: " + std::to_string(source_bytes) + " source bytes for a copy of " + std::to_string(bytes));
    const u64 to = address_of(warp, instruction.operands[0], instruction.displacement, lane);
    const u64 from = address_of(warp, instruction.operands[1], instruction.source_displacement, lane);
    if (from % bytes) warp.fail(instruction, lane, "cp.async: misaligned source " + hex(from));
    const u8* source = reinterpret_cast<const u8*>(from);
    if (source_bytes && warp.block->buffers->find(source, source_bytes) < 0)
      warp.fail(
          instruction, lane,
          "cp.async from global address " + hex(from) + ": out of bounds, " + warp.block->buffers->describe(source));
    if (to >> 32) warp.fail(instruction, lane, "cp.async: " + hex(to) + " is no address of shared memory");
    warp.block->issue(warp, instruction, lane, {static_cast<u32>(to), source, bytes, source_bytes});
  }
}

void decode_thread_copy(Decoder& d) {
  d.expect_operands(3, 4);
  d.allow({"async", "ca", "cg"});
  Instruction& instruction = d.instruction;
  if (d.space() != Space::shared || !d.has("global")) d.fail("this form is not supported");
  d.read_address(d.operand(0), instruction.displacement);
  d.read_address(d.operand(1), instruction.source_displacement);
  const auto bytes = static_cast<u32>(d.operand(2).bits);
  if ((bytes != 4 && bytes != 8 && bytes != 16) || (d.has("cg") && bytes != 16))
    d.fail("the copy size must be 4, 8 or 16 (16 with .cg)");
  instruction.x[0] = bytes;
  instruction.x[1] = d.operand_count() > 3;
  if (instruction.x[1]) d.read(d.operand(3), 4);
  instruction.execute = execute_copy;
}

// --- bulk copies ----------------------------------------------------------------------------------------------------

void execute_bulk_copy(Warp& warp, const Instruction& instruction, u32 mask) {
  for (const int lane : Lanes(mask)) {
    const u64 to = address_of(warp, instruction.operands[0], instruction.displacement, lane);
    const u64 from = address_of(warp, instruction.operands[1], instruction.source_displacement, lane);
    const u32 bytes = warp.get32(instruction.operands[2], lane), barrier = warp.get32(instruction.operands[3], lane);
    if (bytes % 16 || to % 16 || from % 16)
      warp.fail(instruction, lane, "bulk copy: size and addresses must be multiples of 16");
    if (!warp.block->phase_barriers.count(barrier))
      warp.fail(instruction, lane, "bulk copy: no initialized mbarrier at " + hex(barrier));
    warp.block->start_bulk_copy(warp, instruction, lane,
                                {static_cast<u32>(to), reinterpret_cast<const u8*>(from), bytes, bytes}, barrier);
  }
}

void decode_bulk_copy(
    Decoder& d) {  // cp.async.bulk.shared.global.mbarrier::complete_tx::bytes [to], [from], bytes, [barrier]
  d.allow({"async", "bulk", "shared::cluster", "mbarrier::complete_tx::bytes"});
  d.expect_operands(4, 4);
  if (d.space() != Space::shared || !d.has("global")) d.fail("this form is not supported");
  d.read_address(d.operand(0), d.instruction.displacement);
  d.read_address(d.operand(1), d.instruction.source_displacement);
  d.read(d.operand(2), 4);
  s64 displacement = 0;
  d.read_address(d.operand(3), displacement);
  if (displacement) d.fail("a displacement of the mbarrier is not supported");
  d.instruction.execute = execute_bulk_copy;
}

}  // namespace

void decode_copy(Decoder& d) {
  const bool bulk = d.has("bulk");
  if (bulk) return decode_bulk_copy(d);
  if (d.words.size() < 3 || d.words[1] != "async") d.fail("this form is not supported");
  if (d.words[2] == "commit_group") {
    d.instruction.execute = execute_commit;
  } else if (d.words[2] == "wait_all") {
    d.instruction.execute = execute_wait_all;
  } else if (d.words[2] == "wait_group") {
    d.instruction.x[0] = static_cast<u32>(d.operand(0).bits);
    d.instruction.execute = execute_wait_group;
  } else if (d.words[2] == "mbarrier") {
    d.allow({"async", "mbarrier", "arrive", "noinc"});
    d.read_address(d.operand(0), d.instruction.displacement);
    d.instruction.x[0] = d.has("noinc");
    d.instruction.execute = execute_copy_arrival;
  } else {
    decode_thread_copy(d);
  }
}

// --- mbarrier -------------------------------------------------------------------------------------------------------

namespace {

void execute_init(Warp& warp, const Instruction& instruction, u32 mask) {
  for (const int lane : Lanes(mask)) {
    const u64 address = address_of(warp, instruction.operands[0], instruction.displacement, lane);
    std::memset(warp.block->access(warp, instruction, lane, Space::shared, address, 8, true), 0, 8);
    const u32 count = warp.get32(instruction.operands[1], lane);
    if (!count) warp.fail(instruction, lane, "mbarrier with a count of 0");
    warp.block->phase_barriers[static_cast<u32>(address)] = PhaseBarrier{count, count, 0, 0, {}};
  }
}
void execute_invalidate(Warp& warp, const Instruction& instruction, u32 mask) {
  for (const int lane : Lanes(mask)) {
    barrier_at(warp, instruction, 0, lane);
    warp.block->phase_barriers.erase(
        static_cast<u32>(address_of(warp, instruction.operands[0], instruction.displacement, lane)));
  }
}

enum ArrivalField { arrival_address, arrival_has_value, arrival_expects_bytes, arrival_arrives };

void execute_arrival(Warp& warp, const Instruction& instruction, u32 mask) {
  const auto address = static_cast<int>(instruction.x[arrival_address]);
  for (const int lane : Lanes(mask)) {
    PhaseBarrier& barrier = barrier_at(warp, instruction, address, lane);
    const u32 value = instruction.x[arrival_has_value] ? warp.get32(instruction.operands[address + 1], lane) : 1;
    if (instruction.written) warp.put(instruction.operands[0], lane, barrier.phase);
    if (instruction.x[arrival_expects_bytes]) barrier.bytes += value;
    if (!instruction.x[arrival_arrives]) continue;
    const u32 arrivals = instruction.x[arrival_expects_bytes] ? 1 : value;
    if (arrivals > barrier.pending)
      warp.fail(instruction, lane,
                "mbarrier: more arrivals than its count (" + std::to_string(barrier.count) + ") in one phase");
    barrier.pending -= arrivals;
    warp.block->races.release(static_cast<u32>(warp.id), barrier.clock);
    warp.block->check_phase(barrier);
    ++warp.block->progress;
  }
}
void execute_test(Warp& warp, const Instruction& instruction, u32 mask) {
  bool all = true;
  for (const int lane : Lanes(mask)) {
    const PhaseBarrier& barrier = barrier_at(warp, instruction, instruction.written, lane);
    const bool done = barrier.phase != (warp.get(instruction.operands[instruction.written + 1], lane) & 1);
    all &= done;
    if (done) warp.block->races.acquire(static_cast<u32>(warp.id), barrier.clock);
    warp.put(instruction.operands[0], lane, done);
  }
  warp.spun = !all;
}

void decode_arrival(Decoder& d) {
  d.expect_operands(1, 3);
  d.allow({"arrive", "expect_tx", "b64"});
  Instruction& instruction = d.instruction;
  std::size_t next = 0;
  if (d.operand(0).kind != Operand::Kind::memory) d.write(d.operand(next++), 8);
  instruction.x[arrival_address] = static_cast<u32>(instruction.count);
  d.read_address(d.operand(next++), instruction.displacement);
  instruction.x[arrival_has_value] = next < d.operand_count();
  if (instruction.x[arrival_has_value]) d.read(d.operand(next), 4);
  instruction.x[arrival_expects_bytes] = d.has("expect_tx");
  instruction.x[arrival_arrives] = d.has("arrive");
  instruction.execute = execute_arrival;
}

}  // namespace

void decode_phase_barrier(Decoder& d) {
  const std::string operation = d.words.size() > 1 ? d.words[1] : "";
  Instruction& instruction = d.instruction;
  if (operation == "init" || operation == "inval") {
    d.expect_operands(operation == "init" ? 2 : 1, 2);
    d.read_address(d.operand(0), instruction.displacement);
    if (operation == "init") d.read(d.operand(1), 4);
    instruction.execute = operation == "init" ? execute_init : execute_invalidate;
  } else if (operation == "arrive" || operation == "expect_tx") {
    decode_arrival(d);
  } else if (operation == "test_wait" || operation == "try_wait") {
    d.expect_operands(3, 4);  // a limit of time may follow
    d.allow({"test_wait", "try_wait", "parity", "b64"});
    instruction.kind = Kind::spin;
    d.write(d.operand(0), 1);
    d.read_address(d.operand(1), instruction.displacement);
    d.read(d.operand(2), d.has("parity") ? 4 : 8);
    instruction.execute = execute_test;
  } else {
    d.fail("unknown operation");
  }
}

}  // namespace ptx
