/// GPT-2's spelling of bytes: each of the 256 bytes has a printable character, and vocabularies are written in these.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "typeformer/core/annotate.hpp"
#include "typeformer/text/utf8.hpp"

namespace typeformer::inline TYPEFORMER_ABI::text {

/// True for bytes that are spelled as the Latin-1 character of their value: the printable ones.
constexpr bool spells_itself(unsigned byte) {
  return (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || (byte >= 0xae && byte <= 0xff);
}

/// character[byte]: the byte's code point. Printable bytes spell themselves; the other 68 are, in order, U+0100 to
/// U+0143 (space is U+0120). Radford et al. 2019, the published encoder's bytes_to_unicode.
constexpr std::array<char16_t, 256> byte_level_characters() {
  std::array<char16_t, 256> character{};
  char16_t next = 0x100;
  for (unsigned byte = 0; byte < 256; ++byte) {
    character[byte] = spells_itself(byte) ? static_cast<char16_t>(byte) : next++;
  }
  return character;
}

/// The inverse: the byte of each code point below U+0144, or -1.
constexpr std::array<std::int16_t, 0x144> byte_level_values() {
  std::array<std::int16_t, 0x144> value{};
  value.fill(-1);
  const auto character = byte_level_characters();
  for (unsigned byte = 0; byte < 256; ++byte) value[character[byte]] = static_cast<std::int16_t>(byte);
  return value;
}

/// Bytes in their printable spelling.
inline std::string byte_level_spelling(std::string_view bytes) {
  static constexpr auto character = byte_level_characters();
  std::string out;
  for (const char byte : bytes) append_utf8(out, character[static_cast<unsigned char>(byte)]);
  return out;
}

/// The bytes that a spelling stands for; nothing when a character of it spells no byte (or it is not UTF-8).
inline std::optional<std::string> byte_level_bytes(std::string_view spelling) {
  static constexpr auto value = byte_level_values();
  std::string out;
  while (!spelling.empty()) {
    const Utf8Step step = utf8_step(spelling);
    if (!step.valid || step.code >= value.size() || value[step.code] < 0) return std::nullopt;
    out.push_back(static_cast<char>(value[step.code]));
    spelling.remove_prefix(step.length);
  }
  return out;
}

}  // namespace typeformer
