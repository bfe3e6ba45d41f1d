// ld, st, atom, red, and what converts and tests addresses.
#include "decoder.hpp"
#include "numbers.hpp"

namespace ptx {
namespace {

enum AccessField { space_field, bytes_field, is_signed_field, vector_field };

void execute_load(Warp& warp, const Instruction& instruction, u32 mask) {
  const u32 bytes = instruction.x[bytes_field], parts = instruction.x[vector_field];
  const auto space = static_cast<Space>(instruction.x[space_field]);
  const Slot& address = instruction.operands[parts];
  for (const int lane : Lanes(mask)) {
    const u8* from =
        warp.block->access(warp, instruction, lane, space, address_of(warp, address, instruction.displacement, lane),
                           bytes * parts, false);
    for (u32 i = 0; i < parts; ++i) {
      const Slot& to = instruction.operands[i];
      if (bytes == 16) {
        if (to.width) std::memcpy(warp.data<u64>(to) + 2 * lane, from, 16);
        continue;
      }
      u64 word = 0;
      std::memcpy(&word, from + i * bytes, bytes);
      if (instruction.x[is_signed_field] && bytes < 8) word = extend_sign(word, bytes);
      warp.put(to, lane, word);
    }
  }
}
void execute_store(Warp& warp, const Instruction& instruction, u32 mask) {
  const u32 bytes = instruction.x[bytes_field], parts = instruction.x[vector_field];
  const auto space = static_cast<Space>(instruction.x[space_field]);
  for (const int lane : Lanes(mask)) {
    u8* to = warp.block->access(warp, instruction, lane, space,
                                address_of(warp, instruction.operands[0], instruction.displacement, lane),
                                bytes * parts, true);
    for (u32 i = 0; i < parts; ++i) {
      const Slot& from = instruction.operands[1 + i];
      const u64 word = warp.get(from, lane);
      if (bytes == 16)
        std::memcpy(to, warp.data<u64>(from) + 2 * lane, 16);
      else
        std::memcpy(to + i * bytes, &word, bytes);
    }
  }
}

void decode_access(Decoder& d, bool load) {
  d.expect_operands(2, 2);
  d.allow({"unified", "mmio"});
  const Type type = d.type();
  Space space = d.space();
  if (space == Space::parameter && d.is_call_parameter(d.operand(load ? 1 : 0).name)) space = Space::local;
  d.instruction.x[space_field] = static_cast<u32>(space);
  d.instruction.x[bytes_field] = static_cast<u32>(type.bytes);
  d.instruction.x[is_signed_field] = type.is_signed();
  if (load) d.write_all(d.operand(0), type.bytes);
  d.read_address(d.operand(load ? 1 : 0), d.instruction.displacement);
  if (!load) d.read_all(d.operand(1), type.bytes);
  d.instruction.x[vector_field] = static_cast<u32>(d.instruction.count - 1);
  const std::size_t parts = d.has("v2") ? 2 : d.has("v4") ? 4 : 1;
  if (d.instruction.x[vector_field] != parts) d.fail("the number of registers does not fit");
  d.instruction.execute = load ? execute_load : execute_store;
}

}  // namespace

void decode_load(Decoder& d) { decode_access(d, true); }
void decode_store(Decoder& d) { decode_access(d, false); }

// --- atomics --------------------------------------------------------------------------------------------------------

namespace {

enum AtomicField { atomic_space, atomic_bytes, atomic_kind, atomic_operation, atomic_address };
enum class AtomicKind : u32 { integer, signed_integer, f32, f64, f16, bf16, f16x2, bf16x2 };
enum class AtomicOperation : u32 { add, min, max, bit_and, bit_or, bit_xor, exchange, compare, increment, decrement };

u16 add_halves(u16 a, u16 b) { return to_half(double{from_half(a)} + double{from_half(b)}); }
u16 add_bf16(u16 a, u16 b) { return to_bf16(sum_to_odd(double{from_bf16(a)}, double{from_bf16(b)})); }
template <auto add>
u64 add_pairs(u64 a, u64 b) {
  return add(static_cast<u16>(a), static_cast<u16>(b)) |
         static_cast<u64>(add(static_cast<u16>(a >> 16), static_cast<u16>(b >> 16))) << 16;
}

/// Addition of f32 to global memory takes subnormal numbers for zero, to shared memory it does not.
u64 atomic_sum(AtomicKind kind, bool flushes, u64 a, u64 b) {
  switch (kind) {
    case AtomicKind::f32: {
      const float x = bits<float>(static_cast<u32>(a)), y = bits<float>(static_cast<u32>(b));
      return bits<u32>(flushes ? flush(flush(x) + flush(y)) : x + y);
    }
    case AtomicKind::f64:
      return bits<u64>(bits<double>(a) + bits<double>(b));
    case AtomicKind::f16:
      return add_halves(static_cast<u16>(a), static_cast<u16>(b));
    case AtomicKind::bf16:
      return add_bf16(static_cast<u16>(a), static_cast<u16>(b));
    case AtomicKind::f16x2:
      return add_pairs<add_halves>(a, b);
    case AtomicKind::bf16x2:
      return add_pairs<add_bf16>(a, b);
    default:
      return a + b;
  }
}

u64 atomic_result(const Instruction& instruction, bool flushes, u64 old, u64 value, u64 swap) {
  const auto kind = static_cast<AtomicKind>(instruction.x[atomic_kind]);
  const bool is_signed = kind == AtomicKind::signed_integer;
  const u32 bytes = instruction.x[atomic_bytes];
  const bool less =
      is_signed ? static_cast<s64>(extend_sign(value, bytes)) < static_cast<s64>(extend_sign(old, bytes)) : value < old;
  switch (static_cast<AtomicOperation>(instruction.x[atomic_operation])) {
    case AtomicOperation::add:
      return atomic_sum(kind, flushes, old, value);
    case AtomicOperation::min:
      return less ? value : old;
    case AtomicOperation::max:
      return less ? old : value;
    case AtomicOperation::bit_and:
      return old & value;
    case AtomicOperation::bit_or:
      return old | value;
    case AtomicOperation::bit_xor:
      return old ^ value;
    case AtomicOperation::exchange:
      return value;
    case AtomicOperation::compare:
      return old == value ? swap : old;
    case AtomicOperation::increment:
      return old >= value ? 0 : old + 1;
    default:
      return old == 0 || old > value ? value : old - 1;
  }
}

void execute_atomic(Warp& warp, const Instruction& instruction, u32 mask) {
  const u32 bytes = instruction.x[atomic_bytes];
  const auto address = static_cast<int>(instruction.x[atomic_address]);
  const auto space = static_cast<Space>(instruction.x[atomic_space]);
  const u64 all = bytes == 8 ? ~u64{0} : (u64{1} << 8 * bytes) - 1;
  Block& block = *warp.block;
  for (const int lane : Lanes(mask)) {
    const u64 at = address_of(warp, instruction.operands[address], instruction.displacement, lane);
    const bool is_shared = space == Space::shared || at - shared_window < window_size;
    block.races.atomic = true;
    block.access(warp, instruction, lane, space, at, bytes, false);
    u8* memory = block.access(warp, instruction, lane, space, at, bytes, true);
    block.races.atomic = false;
    u64 old = 0;
    std::memcpy(&old, memory, bytes);
    const u64 value = warp.get(instruction.operands[address + 1], lane) & all;
    const u64 swap = instruction.count > address + 2 ? warp.get(instruction.operands[address + 2], lane) : 0;
    const u64 result = atomic_result(instruction, !is_shared, old, value, swap);
    std::memcpy(memory, &result, bytes);
    if (address) warp.put(instruction.operands[0], lane, old);
    ++block.progress;
  }
}

AtomicKind atomic_kind_of(const Decoder& d) {
  const Type type = d.type();
  const std::string& name = d.words.back();
  if (name == "f16x2") return AtomicKind::f16x2;
  if (name == "bf16x2") return AtomicKind::bf16x2;
  if (type.kind == Type::Kind::bf16) return AtomicKind::bf16;
  if (type.kind == Type::Kind::number)
    return type.bytes == 2 ? AtomicKind::f16 : type.bytes == 4 ? AtomicKind::f32 : AtomicKind::f64;
  return type.is_signed() ? AtomicKind::signed_integer : AtomicKind::integer;
}

}  // namespace

void decode_atomic(Decoder& d) {
  static const std::vector<std::string> names = {"add", "min", "max", "and", "or", "xor", "exch", "cas", "inc", "dec"};
  Instruction& instruction = d.instruction;
  const bool result = d.words[0] == "atom";
  d.allow({"add", "min", "max", "and", "or", "xor", "exch", "cas", "inc", "dec", "noftz"});
  if (d.has("v2") || d.has("v4") || d.has("async")) d.fail("this form is not supported");
  const auto operation = std::find_first_of(names.begin(), names.end(), d.words.begin(), d.words.end());
  if (operation == names.end()) d.fail("unknown operation");
  const AtomicKind kind = atomic_kind_of(d);
  if (kind >= AtomicKind::f32 && *operation != "add") d.fail("floats can only be added");
  const int bytes = d.type().bytes;
  if (bytes < 2 || bytes > 8) d.fail("this width is not supported");
  d.expect_operands(2 + result, 3 + result);
  if ((d.operand_count() == 3u + result) != (*operation == "cas")) d.fail("wrong number of operands");
  instruction.x[atomic_space] = static_cast<u32>(d.space());
  instruction.x[atomic_bytes] = static_cast<u32>(bytes);
  instruction.x[atomic_kind] = static_cast<u32>(kind);
  instruction.x[atomic_operation] = static_cast<u32>(operation - names.begin());
  if (result) d.write(d.operand(0), bytes);
  instruction.x[atomic_address] = static_cast<u32>(instruction.count);
  d.read_address(d.operand(result), instruction.displacement);
  for (std::size_t i = 1 + result; i < d.operand_count(); ++i) d.read(d.operand(i), bytes);
  instruction.execute = execute_atomic;
}

// --- addresses ------------------------------------------------------------------------------------------------------

namespace {

u64 window_of(Space space) {
  return space == Space::shared      ? shared_window
         : space == Space::local     ? local_window
         : space == Space::parameter ? parameter_window
                                     : 0;
}
void execute_from_generic(Warp& warp, const Instruction& instruction, u32 mask) {
  const auto window = static_cast<u64>(instruction.displacement);
  for (const int lane : Lanes(mask)) {
    const u64 address = warp.get(instruction.operands[1], lane);
    if (window && address - window >= window_size)
      warp.fail(instruction, lane, hex(address) + " is no generic address of that space");
    if (!window && address >> 56)
      warp.fail(instruction, lane, hex(address) + " is a shared, local or parameter address, not a global one");
    warp.put(instruction.operands[0], lane, address - window);
  }
}
void execute_to_generic(Warp& warp, const Instruction& instruction, u32 mask) {
  for (const int lane : Lanes(mask))
    warp.put(instruction.operands[0], lane,
             warp.get(instruction.operands[1], lane) + static_cast<u64>(instruction.displacement));
}
void execute_space_test(Warp& warp, const Instruction& instruction, u32 mask) {
  for (const int lane : Lanes(mask)) {
    const u64 address = warp.get(instruction.operands[1], lane);
    Space space = Space::global;
    for (const Space other : {Space::shared, Space::local, Space::parameter})
      if (address - window_of(other) < window_size) space = other;
    warp.put(instruction.operands[0], lane, space == static_cast<Space>(instruction.x[0]));
  }
}

}  // namespace

void decode_address_conversion(Decoder& d) {
  d.expect_operands(2, 2);
  d.allow({"to"});
  const int bytes = d.type().bytes;
  d.write(d.operand(0), bytes);
  d.read(d.operand(1), bytes);
  d.instruction.displacement = static_cast<s64>(window_of(d.space()));
  d.instruction.execute = d.has("to") ? execute_from_generic : execute_to_generic;
}
void decode_space_test(Decoder& d) {
  d.expect_operands(2, 2);
  d.instruction.x[0] = static_cast<u32>(d.space());
  d.write(d.operand(0), 1);
  d.read(d.operand(1), 8);
  d.instruction.execute = execute_space_test;
}

}  // namespace ptx
