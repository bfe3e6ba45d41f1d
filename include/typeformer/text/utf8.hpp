/// UTF-8 with damage: one rule for ill-formed bytes, used by encoding, decoding and streaming alike.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "typeformer/core/annotate.hpp"

namespace typeformer::inline TYPEFORMER_ABI::text {

/// What stands at the beginning of some bytes: one code point, or one ill-formed part.
struct Utf8Step {
  char32_t code = 0xfffd;   ///< the code point; U+FFFD for an ill-formed part
  std::size_t length = 0;   ///< bytes taken, 1 to 4; 0 only for empty input
  bool valid = false;       ///< a well-formed code point
  bool unfinished = false;  ///< ill-formed only because the input ends: more bytes could complete it
};

/// Reads one code point. An ill-formed part is the longest prefix of a well-formed sequence, or else one byte: the
/// 'maximal subpart' of the Unicode Standard (3.9, U+FFFD substitution), as Rust, Python and WHATWG decoders have it.
constexpr Utf8Step utf8_step(std::string_view bytes) {
  if (bytes.empty()) return {};
  const auto at = [&](std::size_t i) { return static_cast<std::uint8_t>(bytes[i]); };
  const std::uint8_t lead = at(0);
  if (lead < 0x80) return {lead, 1, true, false};
  const std::size_t length = lead >= 0xc2 && lead <= 0xdf   ? 2
                             : (lead & 0xf0) == 0xe0        ? 3
                             : lead >= 0xf0 && lead <= 0xf4 ? 4
                                                            : 0;
  if (length == 0) return {0xfffd, 1, false, false};
  // The second byte's range excludes overlong forms, surrogates and code points above U+10FFFF.
  std::uint8_t low = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
  std::uint8_t high = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
  char32_t code = lead & (0xffu >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) {
    if (i == bytes.size()) return {0xfffd, i, false, true};
    if (at(i) < low || at(i) > high) return {0xfffd, i, false, false};
    code = (code << 6) | (at(i) & 0x3fu);
    low = 0x80, high = 0xbf;
  }
  return {code, length, true, false};
}

/// Appends the UTF-8 form of a code point (not a surrogate, at most U+10FFFF).
constexpr void append_utf8(std::string& out, char32_t code) {
  const auto put = [&](char32_t byte) { out.push_back(static_cast<char>(static_cast<unsigned char>(byte))); };
  if (code < 0x80) return put(code);
  if (code < 0x800) {
    put(0xc0 | (code >> 6));
  } else {
    if (code < 0x10000) {
      put(0xe0 | (code >> 12));
    } else {
      put(0xf0 | (code >> 18));
      put(0x80 | ((code >> 12) & 0x3f));
    }
    put(0x80 | ((code >> 6) & 0x3f));
  }
  put(0x80 | (code & 0x3f));
}

/// True when every byte belongs to a well-formed code point.
constexpr bool is_valid_utf8(std::string_view bytes) {
  while (!bytes.empty()) {
    if (static_cast<std::uint8_t>(bytes.front()) < 0x80) {
      bytes.remove_prefix(1);
      continue;
    }
    const Utf8Step step = utf8_step(bytes);
    if (!step.valid) return false;
    bytes.remove_prefix(step.length);
  }
  return true;
}

/// Appends bytes with every ill-formed part replaced by U+FFFD and returns how many bytes were taken. Bytes at the end
/// that more input could complete are left (0 to 3 of them) unless `final`, which replaces them too.
inline std::size_t append_valid_utf8(std::string& out, std::string_view bytes, bool final) {
  std::size_t taken = 0;
  while (taken < bytes.size()) {
    const Utf8Step step = utf8_step(bytes.substr(taken));
    if (step.unfinished && !final) break;
    if (step.valid) {
      out.append(bytes, taken, step.length);
    } else {
      append_utf8(out, 0xfffd);
    }
    taken += step.length;
  }
  return taken;
}

/// The text with every ill-formed part replaced by U+FFFD.
inline std::string to_valid_utf8(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size());
  append_valid_utf8(out, bytes, true);
  return out;
}

}  // namespace typeformer
