/// The one exception type of the library.
#pragma once
#include <stdexcept>
#include <string>
#include <string_view>

#include "typeformer/core/annotate.hpp"

namespace typeformer::inline TYPEFORMER_ABI {

/// What went wrong at run time, in four parts: `norm_rows: x: expected 4096 columns, got 4095`.
/// A wrong argument is refused before anything is changed: the objects involved stay usable.
class Error : public std::runtime_error {
 public:
  Error(std::string_view operation, std::string_view argument, std::string_view expected, std::string_view got)
      : std::runtime_error(sentence(operation, argument, expected, got)), operation_(operation), argument_(argument),
        expected_(expected), got_(got) {}

  /// The function or step that refused, e.g. `load`.
  const std::string& operation() const noexcept { return operation_; }
  /// Its argument, field, tensor or file.
  const std::string& argument() const noexcept { return argument_; }
  /// What must hold.
  const std::string& expected() const noexcept { return expected_; }
  /// What was found.
  const std::string& got() const noexcept { return got_; }

 private:
  static std::string sentence(std::string_view operation, std::string_view argument, std::string_view expected,
                              std::string_view got) {
    std::string text(operation);
    text.append(": ").append(argument).append(": expected ").append(expected).append(", got ").append(got);
    return text;
  }
  std::string operation_, argument_, expected_, got_;
};

}  // namespace typeformer
