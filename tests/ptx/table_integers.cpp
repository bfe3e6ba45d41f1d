#include "table.hpp"

namespace ptx {
namespace {

template <class T>
void add_arithmetic(Table& t, const char* type) {
  using U = std::make_unsigned_t<T>;
  t("add.", type) = lanes<[](T a, T b) -> T { return static_cast<T>(static_cast<U>(a) + static_cast<U>(b)); }>();
  t("sub.", type) = lanes<[](T a, T b) -> T { return static_cast<T>(static_cast<U>(a) - static_cast<U>(b)); }>();
  t("mul.lo.", type) = lanes<[](T a, T b) -> T { return static_cast<T>(static_cast<u64>(a) * static_cast<u64>(b)); }>();
  t("mul.hi.", type) = lanes<[](T a, T b) -> T { return high_product(a, b); }>();
  t("mad.lo.", type) = lanes<[](T a, T b, T c) -> T {
    return static_cast<T>(static_cast<u64>(a) * static_cast<u64>(b) + static_cast<u64>(c));
  }>();
  t("mad.hi.", type) = lanes<[](T a, T b, T c) -> T {
    return static_cast<T>(static_cast<U>(high_product(a, b)) + static_cast<U>(c));
  }>();
  t("div.", type) = lanes<[](T a, T b) -> T { return quotient(a, b); }>();
  t("rem.", type) = lanes<[](T a, T b) -> T { return remainder_of(a, b); }>();
  t("min.", type) = lanes<[](T a, T b) -> T { return std::min(a, b); }>();
  t("max.", type) = lanes<[](T a, T b) -> T { return std::max(a, b); }>();
  t("shr.", type) = lanes<[](T a, u32 by) -> T { return shift_right(a, by); }>();
  t("neg.", type) = lanes<[](T a) -> T { return static_cast<T>(0 - static_cast<U>(a)); }>();
  t("abs.", type) = lanes<[](T a) -> T { return a < 0 ? static_cast<T>(0 - static_cast<U>(a)) : a; }>();
  if constexpr (sizeof(T) >= 4)
    t("bfe.", type) = lanes<[](T a, u32 position, u32 length) -> T { return extract_bits(a, position, length); }>();
  add_comparisons<T, [](auto value) { return value; }>(t, type, false);
}

template <class T, class Wide>
void add_wide(Table& t, const char* type) {
  t("mul.wide.", type) = lanes<[](T a, T b) -> Wide { return static_cast<Wide>(Wide{a} * Wide{b}); }>();
  t("mad.wide.", type) = lanes<[](T a, T b, Wide c) -> Wide {
    return static_cast<Wide>(static_cast<u64>(Wide{a} * Wide{b}) + static_cast<u64>(c));
  }>();
}

}  // namespace

void add_integers(Table& t) {
  add_arithmetic<u16>(t, "u16");
  add_arithmetic<s16>(t, "s16");
  add_arithmetic<u32>(t, "u32");
  add_arithmetic<s32>(t, "s32");
  add_arithmetic<u64>(t, "u64");
  add_arithmetic<s64>(t, "s64");
  add_wide<u16, u32>(t, "u16");
  add_wide<s16, s32>(t, "s16");
  add_wide<u32, u64>(t, "u32");
  add_wide<s32, s64>(t, "s32");
  t("sad.u32") = lanes<[](u32 a, u32 b, u32 c) -> u32 { return c + std::max(a, b) - std::min(a, b); }>();
  t("sad.s32") = lanes<[](s32 a, s32 b, s32 c) -> s32 {
    const u32 difference = static_cast<u32>(std::max(a, b)) - static_cast<u32>(std::min(a, b));
    return static_cast<s32>(static_cast<u32>(c) + difference);
  }>();
  t("dp4a.s32.s32") = lanes<[](u32 a, u32 b, s32 c) -> s32 {
    for (int i = 0; i < 4; ++i) c += s32{static_cast<s8>(a >> 8 * i)} * s32{static_cast<s8>(b >> 8 * i)};
    return c;
  }>();
  t("dp4a.u32.u32") = lanes<[](u32 a, u32 b, u32 c) -> u32 {
    for (int i = 0; i < 4; ++i) c += (a >> 8 * i & 255) * (b >> 8 * i & 255);
    return c;
  }>();
}

}  // namespace ptx
