/// Names that come from untrusted files, made fit for an error message.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

#include "typeformer/core/annotate.hpp"

namespace typeformer::inline TYPEFORMER_ABI::io {

/// `name` between single quotes: control characters become '?', what exceeds 120 bytes becomes "...".
inline std::string quote_name(std::string_view name) {
  constexpr std::size_t longest = 120;
  std::string text(1, '\'');
  for (const char character : name.substr(0, longest)) {
    const auto code = static_cast<unsigned char>(character);
    text.push_back(code < 0x20 || code == 0x7f ? '?' : character);
  }
  if (name.size() > longest) text.append("...");
  return text.append(1, '\'');
}

}  // namespace typeformer
