// cvt, between every two types, and mov.
#include "decoder.hpp"
#include "numbers.hpp"

namespace ptx {
namespace {

/// What x holds: types as kind | bytes << 8.
enum ConversionField { to_type, from_type, rounding_field, saturate, integral };

Type unpack(u32 word) { return {static_cast<Type::Kind>(word & 255), static_cast<int>(word >> 8)}; }
u32 pack(Type type) { return static_cast<u32>(type.kind) | static_cast<u32>(type.bytes) << 8; }

double round_to_integer(double value, Rounding rounding) {
  switch (rounding) {
    case Rounding::zero:
      return std::trunc(value);
    case Rounding::down:
      return std::floor(value);
    case Rounding::up:
      return std::ceil(value);
    default:
      return std::nearbyint(value);
  }
}

double read_float(Type type, u64 word) {
  if (type.kind == Type::Kind::bf16) return double{from_bf16(static_cast<u16>(word))};
  if (type.bytes == 2) return double{from_half(static_cast<u16>(word))};
  return type.bytes == 4 ? double{bits<float>(static_cast<u32>(word))} : bits<double>(word);
}

u64 write_float(Type type, double value, Rounding rounding) {
  if (type.kind == Type::Kind::bf16) return narrow(value, 8, 7, rounding);
  if (type.kind == Type::Kind::tf32) return static_cast<u64>(narrow(value, 8, 10, rounding)) << 13;
  if (type.bytes == 2) return narrow(value, 5, 10, rounding);
  if (type.bytes == 8) return bits<u64>(value);
  return rounding == Rounding::nearest ? bits<u32>(static_cast<float>(value)) : narrow(value, 8, 23, rounding);
}

/// Clamped; what NaN gives depends on both types.
u64 float_to_integer(Type to, Type from, double value, Rounding rounding) {
  const int width = to.bytes * 8;
  const double whole = round_to_integer(value, rounding);
  if (whole != whole) return from.bytes == 8 || to.bytes == 8 ? u64{1} << (width - 1) : 0;
  const double limit = std::ldexp(1.0, width - to.is_signed()), least = to.is_signed() ? -limit : 0;
  if (whole >= limit) return to.is_signed() ? (u64{1} << (width - 1)) - 1 : ~u64{0};
  if (whole <= least) return static_cast<u64>(static_cast<s64>(least));
  return to.is_signed() ? static_cast<u64>(static_cast<s64>(whole)) : static_cast<u64>(whole);
}

u64 integer_to_integer(Type to, Type from, u64 value, bool clamp) {
  if (clamp) {
    const s128 wide = from.is_signed() ? s128{static_cast<s64>(value)} : s128{value};
    const s128 most = (s128{1} << (to.bytes * 8 - to.is_signed())) - 1, least = to.is_signed() ? -most - 1 : 0;
    value = static_cast<u64>(std::clamp(wide, least, most));
  }
  const auto bytes = static_cast<u32>(to.bytes);
  if (to.bytes == 8) return value;
  return to.is_signed() ? extend_sign(value, bytes) : value & ((u64{1} << 8 * bytes) - 1);
}

u64 to_float(const Instruction& instruction, Type to, Type from, u64 word, double value) {
  const auto rounding = static_cast<Rounding>(instruction.x[rounding_field]);
  if (!from.is_float() && to.bytes == 4 && to.kind == Type::Kind::number && rounding == Rounding::nearest)
    return bits<u32>(from.is_signed() ? static_cast<float>(static_cast<s64>(word)) : static_cast<float>(word));
  if (instruction.x[integral]) value = round_to_integer(value, rounding);
  if (instruction.x[saturate]) value = value > 0 ? std::min(value, 1.0) : 0;
  return write_float(to, value, instruction.x[integral] ? Rounding::nearest : rounding);
}

void execute_conversion(Warp& warp, const Instruction& instruction, u32 mask) {
  const Type to = unpack(instruction.x[to_type]), from = unpack(instruction.x[from_type]);
  const bool flush_from = instruction.flush && from.kind == Type::Kind::number && from.bytes == 4;
  const bool flush_to = instruction.flush && to.kind == Type::Kind::number && to.bytes == 4;
  for (const int lane : Lanes(mask)) {
    u64 word = warp.get(instruction.operands[1], lane);
    double value = 0;
    if (from.is_float()) {
      value = read_float(from, word);
      if (flush_from) value = double{flush(static_cast<float>(value))};
    } else {
      word = integer_to_integer(from, from, word, false);
      value = from.is_signed() ? static_cast<double>(static_cast<s64>(word)) : static_cast<double>(word);
    }
    u64 result = 0;
    if (to.is_float())
      result = to_float(instruction, to, from, word, value);
    else if (from.is_float())
      result = float_to_integer(to, from, value, static_cast<Rounding>(instruction.x[rounding_field]));
    else
      result = integer_to_integer(to, from, word, instruction.x[saturate]);
    if (flush_to) result = bits<u32>(flush(bits<float>(static_cast<u32>(result))));
    warp.put(instruction.operands[0], lane, result);
  }
}

}  // namespace

void decode_conversion(Decoder& d) {
  static const std::map<std::string, Rounding> roundings = {
      {"rn", Rounding::nearest},  {"rz", Rounding::zero},  {"rm", Rounding::down},  {"rp", Rounding::up},
      {"rni", Rounding::nearest}, {"rzi", Rounding::zero}, {"rmi", Rounding::down}, {"rpi", Rounding::up}};
  Instruction& instruction = d.instruction;
  std::vector<Type> types;
  for (std::size_t i = 1; i < d.words.size(); ++i) {
    const std::string& word = d.words[i];
    if (const auto found = roundings.find(word); found != roundings.end()) {
      instruction.x[rounding_field] = static_cast<u32>(found->second);
      instruction.x[integral] = word.size() == 3;
    } else if (word == "sat") {
      instruction.x[saturate] = 1;
    } else if (type_of(word).kind != Type::Kind::none && word.find('x') == word.npos) {
      types.push_back(type_of(word));
    } else {
      d.fail("unknown modifier ." + word);
    }
  }
  if (types.size() != 2) d.fail("unknown form");
  d.expect_operands(2, 2);
  if (types[0].is_float() && !types[1].is_float() && types[1].bytes == 8 && instruction.x[rounding_field])
    d.fail("a 64-bit integer to a float with a rounding other than .rn is not supported");
  instruction.x[to_type] = pack(types[0]);
  instruction.x[from_type] = pack(types[1]);
  instruction.execute = execute_conversion;
  d.write(d.operand(0), types[0].bytes);
  d.read(d.operand(1), types[1].bytes);
}

namespace {

void execute_pack(Warp& warp, const Instruction& instruction, u32 mask) {
  for (const int lane : Lanes(mask)) {
    u64 word = 0;
    for (int i = 1; i < instruction.count; ++i)
      word |= warp.get(instruction.operands[i], lane) << static_cast<u32>(i - 1) * instruction.x[0];
    warp.put(instruction.operands[0], lane, word);
  }
}
void execute_unpack(Warp& warp, const Instruction& instruction, u32 mask) {
  for (const int lane : Lanes(mask)) {
    const u64 word = warp.get(instruction.operands[instruction.written], lane);
    for (int i = 0; i < instruction.written; ++i)
      warp.put(instruction.operands[i], lane, word >> static_cast<u32>(i) * instruction.x[0]);
  }
}
template <class T>
void execute_move(Warp& warp, const Instruction& instruction, u32 mask) {
  T* to = warp.data<T>(instruction.operands[0]);
  const T* from = warp.data<T>(instruction.operands[1]);
  if (mask == all_lanes) {
    std::memmove(to, from, warp_size * sizeof(T));
    return;
  }
  for (const int lane : Lanes(mask)) to[lane] = from[lane];
}

}  // namespace

void decode_move(Decoder& d) {
  d.expect_operands(2, 2);
  const int bytes = d.type().bytes;
  const Operand& to = d.operand(0);
  Operand from = d.operand(1);
  const bool packs = from.kind == Operand::Kind::vector, unpacks = to.kind == Operand::Kind::vector;
  if (packs || unpacks) {
    const int part = bytes / static_cast<int>((packs ? from : to).parts.size());
    d.write_all(to, unpacks ? part : bytes);
    d.read_all(from, packs ? part : bytes);
    d.instruction.x[0] = static_cast<u32>(part) * 8;
    d.instruction.execute = packs ? execute_pack : execute_unpack;
    return;
  }
  if (bytes == 1 && from.kind == Operand::Kind::number) from.bits = from.bits != 0;  // mov.pred p, -1
  if (bytes == 16) d.fail("a move of 128 bits is not supported");
  d.write(to, bytes);
  d.read(from, bytes);
  if (d.instruction.operands[0].width != bytes || d.instruction.operands[1].width != bytes)
    d.fail("an operand does not have " + std::to_string(bytes * 8) + " bits");
  d.instruction.copies_definedness = true;
  d.instruction.execute = bytes == 1   ? execute_move<u8>
                          : bytes == 2 ? execute_move<u16>
                          : bytes == 4 ? execute_move<u32>
                                       : execute_move<u64>;
}

}  // namespace ptx
