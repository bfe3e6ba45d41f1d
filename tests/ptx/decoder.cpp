#include "decoder.hpp"

#include <cctype>
#include <cstdlib>
#include <unordered_map>

namespace ptx {

Type type_of(const std::string& word) {
  if (word == "bf16") return {Type::Kind::bf16, 2};
  if (word == "tf32") return {Type::Kind::tf32, 4};
  if (word == "pred") return {Type::Kind::bits, 1};
  if (word == "f16x2" || word == "bf16x2") return {Type::Kind::bits, 4};
  const std::string letters = "usbf";
  const auto letter = word.empty() ? letters.npos : letters.find(word[0]);
  if (letter == letters.npos || word.size() < 2) return {};
  for (std::size_t i = 1; i < word.size(); ++i)
    if (!std::isdigit(static_cast<unsigned char>(word[i]))) return {};
  constexpr Type::Kind kinds[] = {Type::Kind::unsigned_integer, Type::Kind::signed_integer, Type::Kind::bits,
                                  Type::Kind::number};
  return {kinds[letter], std::atoi(word.c_str() + 1) / 8};
}

void Decoder::allow(std::initializer_list<const char*> list) const {
  static const char* const ignored[] = {"relaxed", "acquire", "release", "acq_rel", "volatile",     "weak",
                                        "cta",     "gpu",     "sys",     "cluster", "sync",         "aligned",
                                        "ca",      "cg",      "cs",      "lu",      "cv",           "wb",
                                        "wt",      "nc",      "v2",      "v4",      "shared::cta",  "global",
                                        "shared",  "local",   "param",   "const",   "param::entry", "param::func"};
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::string& word = words[i];
    const auto is_word = [&](const char* other) { return word == other; };
    if (std::any_of(list.begin(), list.end(), is_word) || std::any_of(std::begin(ignored), std::end(ignored), is_word))
      continue;
    if (word.rfind("L1::", 0) == 0 || (word.rfind("L2::", 0) == 0 && word != "L2::cache_hint")) continue;
    if (type_of(word).kind == Type::Kind::none) fail("unknown modifier ." + word);
  }
}
Type Decoder::type() const {
  const Type type = type_of(words.back());
  if (type.kind == Type::Kind::none) fail("unknown type ." + words.back());
  return type;
}
Space Decoder::space() const {
  for (const std::string& word : words) {
    if (word.rfind("shared", 0) == 0) return Space::shared;
    if (word == "global") return Space::global;
    if (word == "local") return Space::local;
    if (word.rfind("param", 0) == 0) return Space::parameter;
    if (word == "const") return Space::constant;
  }
  return Space::generic;
}
void Decoder::write_with_predicate(const Operand& operand) {
  if (operand.kind != Operand::Kind::pair) return write(operand, 4);
  write(operand.parts[0], 4);
  write(operand.parts[1], 1);
}
bool Decoder::read_predicate(const Operand& operand) {
  Operand plain = operand;
  plain.negated = false;
  if (plain.kind == Operand::Kind::number) plain.bits = plain.bits != 0;
  read(plain, 1);
  return operand.negated;
}
void Decoder::read_address(const Operand& operand, s64& displacement) {
  if (operand.kind != Operand::Kind::memory) fail("expected [address]");
  if (!operand.parts.empty()) fail("coordinates of a tensor are not supported");
  Operand plain = operand;
  plain.kind = operand.name.empty() ? Operand::Kind::number : Operand::Kind::name;
  plain.offset = 0;
  displacement = operand.offset;
  read(plain, 8);
}

namespace {

/// Orders memory, hints, scheduling: all the same to a machine that runs one instruction after the other.
void decode_nothing(Decoder& d) {
  d.instruction.execute = [](Warp&, const Instruction&, u32) {};
}
void decode_branch(Decoder& d) {
  d.instruction.kind = Kind::branch;
  const auto found = d.function.labels.find(d.operand(0).name);
  if (found == d.function.labels.end()) d.fail("unknown label " + d.operand(0).name);
  d.instruction.target = found->second;
}
void decode_indexed_branch(Decoder& d) {
  d.instruction.kind = Kind::indexed_branch;
  d.read(d.operand(0), 4);
  const auto table = d.function.tables.find(d.operand(1).name);
  if (table == d.function.tables.end()) d.fail("unknown table " + d.operand(1).name);
  for (const std::string& label : table->second) d.instruction.targets.push_back(d.function.labels.at(label));
}
void decode_exit(Decoder& d) { d.instruction.kind = Kind::exit; }
void decode_trap(Decoder& d) {
  d.instruction.execute = [](Warp& warp, const Instruction& instruction, u32 mask) {
    warp.fail(instruction, first_lane(mask), "trap");
  };
}

}  // namespace

Decode find_decoder(const std::string& word) {
  static const std::unordered_map<std::string, Decode> all = {{"cvt", decode_conversion},
                                                              {"mov", decode_move},
                                                              {"ld", decode_load},
                                                              {"ldu", decode_load},
                                                              {"st", decode_store},
                                                              {"atom", decode_atomic},
                                                              {"red", decode_atomic},
                                                              {"cvta", decode_address_conversion},
                                                              {"isspacep", decode_space_test},
                                                              {"shfl", decode_shuffle},
                                                              {"vote", decode_vote},
                                                              {"match", decode_match},
                                                              {"redux", decode_warp_reduction},
                                                              {"elect", decode_election},
                                                              {"activemask", decode_active_mask},
                                                              {"bar", decode_barrier},
                                                              {"barrier", decode_barrier},
                                                              {"mma", decode_matrix_product},
                                                              {"ldmatrix", decode_matrix_access},
                                                              {"stmatrix", decode_matrix_access},
                                                              {"cp", decode_copy},
                                                              {"mbarrier", decode_phase_barrier},
                                                              {"bra", decode_branch},
                                                              {"brx", decode_indexed_branch},
                                                              {"ret", decode_exit},
                                                              {"exit", decode_exit},
                                                              {"trap", decode_trap},
                                                              {"fence", decode_nothing},
                                                              {"membar", decode_nothing},
                                                              {"prefetch", decode_nothing},
                                                              {"prefetchu", decode_nothing},
                                                              {"nanosleep", decode_nothing},
                                                              {"griddepcontrol", decode_nothing},
                                                              {"setmaxnreg", decode_nothing},
                                                              {"discard", decode_nothing}};
  const auto found = all.find(word);
  return found == all.end() ? nullptr : found->second;
}

}  // namespace ptx
