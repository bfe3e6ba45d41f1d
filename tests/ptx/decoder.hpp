/// Families of instructions whose modifiers are read once, when an entry is decoded.
#pragma once
#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "machine.hpp"

namespace ptx {

/// A type as instructions name it.
struct Type {
  enum class Kind : u8 { none, unsigned_integer, signed_integer, bits, number, bf16, tf32 };
  Kind kind = Kind::none;
  int bytes = 0;
  bool is_float() const { return kind == Kind::number || kind == Kind::bf16 || kind == Kind::tf32; }
  bool is_signed() const { return kind == Kind::signed_integer; }
};
/// kind is none when the word is no type.
Type type_of(const std::string& word);

/// What a family's decoder reads, and the instruction that it fills.
class Decoder {
 public:
  const Statement& statement;
  const Function& function;
  Instruction& instruction;
  std::vector<std::string> words;  // of the name, without ftz
  std::function<Slot(const Operand&, int width)> slot;
  std::function<bool(const std::string&)> is_call_parameter;  // a .param variable of a call: it lies in local memory

  [[noreturn]] void fail(const std::string& why) const {
    throw Error("ptx: line " + std::to_string(statement.line) + ": " + statement.op + ": " + why);
  }
  bool has(const char* word) const { return std::find(words.begin(), words.end(), word) != words.end(); }
  /// Fails when the name has a word that is not in the list; types and the first word do not count. Lists end in what
  /// changes nothing here: scopes, orders, cache hints.
  void allow(std::initializer_list<const char*> list) const;
  Type type() const;
  Space space() const;

  std::size_t operand_count() const { return statement.operands.size(); }
  const Operand& operand(std::size_t index) const {
    if (index >= operand_count()) fail("an operand is missing");
    return statement.operands[index];
  }
  void expect_operands(std::size_t least, std::size_t most) const {
    if (operand_count() < least || operand_count() > most) fail("has " + std::to_string(operand_count()) + " operands");
  }
  void read(const Operand& operand, int width) { add(operand, width, false); }
  void write(const Operand& operand, int width) { add(operand, width, true); }
  /// A vector's parts, or a single operand.
  void read_all(const Operand& operand, int width) { add_all(operand, width, false); }
  void write_all(const Operand& operand, int width) { add_all(operand, width, true); }
  /// `d|p`: a word and a predicate; the predicate is optional.
  void write_with_predicate(const Operand& operand);
  /// A predicate whose negation is told apart.
  bool read_predicate(const Operand& operand);
  /// [address + displacement]
  void read_address(const Operand& operand, s64& displacement);

 private:
  void add(const Operand& operand, int width, bool written) {
    if (instruction.count == Instruction::max_operands) fail("too many operands");
    instruction.written += written;
    instruction.operands[instruction.count++] = slot(operand, width);
  }
  void add_all(const Operand& operand, int width, bool written) {
    if (operand.kind != Operand::Kind::vector) return add(operand, width, written);
    for (const Operand& part : operand.parts) add(part, width, written);
  }
};

using Decode = void (*)(Decoder&);
/// The decoder of a name's first word, or null.
Decode find_decoder(const std::string& word);

void decode_conversion(Decoder& d);
void decode_move(Decoder& d);
void decode_load(Decoder& d);
void decode_store(Decoder& d);
void decode_atomic(Decoder& d);
void decode_address_conversion(Decoder& d);
void decode_space_test(Decoder& d);
void decode_shuffle(Decoder& d);
void decode_vote(Decoder& d);
void decode_match(Decoder& d);
void decode_warp_reduction(Decoder& d);
void decode_election(Decoder& d);
void decode_active_mask(Decoder& d);
void decode_barrier(Decoder& d);
void decode_matrix_product(Decoder& d);
void decode_matrix_access(Decoder& d);
void decode_copy(Decoder& d);
void decode_phase_barrier(Decoder& d);

/// The address in an operand, plus a displacement: 32 bits wrap around.
inline u64 address_of(const Warp& warp, const Slot& slot, s64 displacement, int lane) {
  if (slot.width == 4) return warp.data<u32>(slot)[lane] + static_cast<u32>(displacement);
  return warp.get(slot, lane) + static_cast<u64>(displacement);
}
inline u64 extend_sign(u64 value, u32 bytes) {
  const u32 shift = 64 - 8 * bytes;
  return static_cast<u64>(static_cast<s64>(value << shift) >> shift);
}

}  // namespace ptx
