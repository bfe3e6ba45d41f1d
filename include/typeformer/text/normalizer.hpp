/// Unicode normalization before tokenisation.
#pragma once
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>

#include <utf8proc.h>

#include "typeformer/core/annotate.hpp"
#include "typeformer/core/error.hpp"

namespace typeformer::inline TYPEFORMER_ABI::text {

/// What a tokenizer does to a text before it cuts it.
enum class Normalization { none, nfc };

/// True when normalization cannot change the text: NFC keeps everything below U+0300.
inline bool surely_normalized(std::string_view text) {
  for (const char byte : text) {
    if (static_cast<unsigned char>(byte) >= 0xcc) return false;  // the lead byte of U+0300
  }
  return true;
}

/// The text (valid UTF-8) in its normal form. Unicode Standard Annex 15.
inline std::string normalized(std::string_view text, Normalization normalization) {
  if (normalization == Normalization::none || surely_normalized(text)) return std::string(text);
  utf8proc_uint8_t* result = nullptr;
  const utf8proc_ssize_t length =
      utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()), static_cast<utf8proc_ssize_t>(text.size()),
                   &result, static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
  const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owner(result, &std::free);
  if (length < 0)
    throw Error("Tokenizer::encode", "text", "a text that can be brought to NFC", utf8proc_errmsg(length));
  return {reinterpret_cast<const char*>(result), static_cast<std::size_t>(length)};
}

}  // namespace typeformer
