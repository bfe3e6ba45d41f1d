#include "table.hpp"

namespace ptx {
namespace {

template <class U>
void add_logic(Table& t, const char* type) {
  t("and.", type) = lanes<[](U a, U b) -> U { return a & b; }>();
  t("or.", type) = lanes<[](U a, U b) -> U { return a | b; }>();
  t("xor.", type) = lanes<[](U a, U b) -> U { return a ^ b; }>();
  if constexpr (std::is_same_v<U, bool>) {
    t("not.", type) = lanes<[](bool a) -> bool { return !a; }>();
  } else {
    t("not.", type) = lanes<[](U a) -> U { return static_cast<U>(~a); }>();
    t("cnot.", type) = lanes<[](U a) -> U { return a == 0; }>();
    t("shl.", type) = lanes<[](U a, u32 by) -> U { return shift_left(a, by); }>();
    t("shr.", type) = lanes<[](U a, u32 by) -> U { return shift_right(a, by); }>();
    add_comparisons<U, [](auto value) { return value; }>(t, type, false);
  }
}
template <class U>
void add_selection(Table& t, std::initializer_list<const char*> types) {
  for (const char* type : types) {
    t("selp.", type) = lanes<[](U a, U b, bool first) -> U { return first ? a : b; }>();
    t("slct.", type, ".s32") = lanes<[](U a, U b, s32 c) -> U { return c >= 0 ? a : b; }>();
    t("slct.", type, ".f32") = lanes<[](U a, U b, float c) -> U { return c >= 0 ? a : b; }>();
  }
}

u32 three_way_logic(u32 a, u32 b, u32 c, u32 function) {
  u32 result = 0;
  for (int row = 0; row < 8; ++row)
    if (function >> row & 1) result |= (row & 4 ? a : ~a) & (row & 2 ? b : ~b) & (row & 1 ? c : ~c);
  return result;
}
u32 reverse_bits(u32 a) {
  u32 result = 0;
  for (int i = 0; i < 32; ++i) result |= (a >> i & 1) << (31 - i);
  return result;
}
/// The low word of (b:a) >> by, the high word of (b:a) << by.
u32 funnel_right(u32 a, u32 b, u32 by) { return static_cast<u32>((u64{b} << 32 | a) >> by); }
u32 funnel_left(u32 a, u32 b, u32 by) { return static_cast<u32>((u64{b} << 32 | a) << by >> 32); }

void add_counts(Table& t) {
  t("popc.b32") = lanes<[](u32 a) -> u32 { return static_cast<u32>(std::popcount(a)); }>();
  t("popc.b64") = lanes<[](u64 a) -> u32 { return static_cast<u32>(std::popcount(a)); }>();
  t("clz.b32") = lanes<[](u32 a) -> u32 { return static_cast<u32>(std::countl_zero(a)); }>();
  t("clz.b64") = lanes<[](u64 a) -> u32 { return static_cast<u32>(std::countl_zero(a)); }>();
  t("brev.b32") = lanes<[](u32 a) -> u32 { return reverse_bits(a); }>();
  t("brev.b64") = lanes<[](u64 a) -> u64 {
    return u64{reverse_bits(static_cast<u32>(a))} << 32 | reverse_bits(static_cast<u32>(a >> 32));
  }>();
  t("bfind.u32") = lanes<[](u32 a) -> u32 { return static_cast<u32>(31 - std::countl_zero(a)); }>();
  t("bfind.s32") = lanes<[](u32 a) -> u32 { return static_cast<u32>(31 - std::countl_zero(a >> 31 ? ~a : a)); }>();
  t("bfind.u64") = lanes<[](u64 a) -> u32 { return static_cast<u32>(63 - std::countl_zero(a)); }>();
  t("bfind.shiftamt.u32") = lanes<[](u32 a) -> u32 { return a ? static_cast<u32>(std::countl_zero(a)) : ~u32{0}; }>();
}

}  // namespace

void add_bits(Table& t) {
  add_logic<bool>(t, "pred");
  add_logic<u16>(t, "b16");
  add_logic<u32>(t, "b32");
  add_logic<u64>(t, "b64");
  add_selection<u16>(t, {"b16", "u16", "s16"});
  add_selection<u32>(t, {"b32", "u32", "s32", "f32"});
  add_selection<u64>(t, {"b64", "u64", "s64", "f64"});
  add_counts(t);
  t("prmt.b32") = lanes<[](u32 a, u32 b, u32 selector) -> u32 { return permute_bytes(a, b, selector); }>();
  t("bfi.b32") = lanes<[](u32 a, u32 b, u32 at, u32 length) -> u32 { return insert_bits(a, b, at, length); }>();
  t("bfi.b64") = lanes<[](u64 a, u64 b, u32 at, u32 length) -> u64 { return insert_bits(a, b, at, length); }>();
  t("lop3.b32") = lanes<[](u32 a, u32 b, u32 c, u32 function) -> u32 { return three_way_logic(a, b, c, function); }>();
  t("shf.l.wrap.b32") = lanes<[](u32 a, u32 b, u32 by) -> u32 { return funnel_left(a, b, by & 31); }>();
  t("shf.r.wrap.b32") = lanes<[](u32 a, u32 b, u32 by) -> u32 { return funnel_right(a, b, by & 31); }>();
  t("shf.l.clamp.b32") = lanes<[](u32 a, u32 b, u32 by) -> u32 { return funnel_left(a, b, std::min(by, 32u)); }>();
  t("shf.r.clamp.b32") = lanes<[](u32 a, u32 b, u32 by) -> u32 { return funnel_right(a, b, std::min(by, 32u)); }>();
  t("bmsk.clamp.b32") =
      lanes<[](u32 at, u32 length) -> u32 { return shift_left(length > 31 ? ~u32{0} : (u32{1} << length) - 1, at); }>();
  t("bmsk.wrap.b32") = lanes<[](u32 at, u32 length) -> u32 { return ((u32{1} << (length & 31)) - 1) << (at & 31); }>();
}

}  // namespace ptx
