/// How the host layer reports what a kernel did wrong: the source line, the rule, and the thread that broke it.
#pragma once
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <string>

#include "typeformer/core/error.hpp"

namespace typeformer::inline TYPEFORMER_ABI::simt {

/// A position in a kernel's source. As a default argument `Place place = Place::here()` it names the caller's line.
struct Place {
  const char* file = "?";
  int line = 0;

  static constexpr Place here(const char* file = __builtin_FILE(), int line = __builtin_LINE()) { return {file, line}; }

  /// The file's name without its folders.
  const char* name() const {
    const char* slash = std::strrchr(file, '/');
    return slash ? slash + 1 : file;
  }
  bool operator==(const Place& other) const {
    return line == other.line && (file == other.file || std::strcmp(file, other.file) == 0);
  }
};

/// Thrown by the call that waits for a kernel (a synchronization or a blocking copy) when the kernel broke a rule.
/// operation: the built-in or checker; argument: file and line; expected: the rule; got: what happened, and which
/// thread.
class Fault : public Error {
 public:
  using Error::Error;
};

/// A text of bounded length without ownership: a fiber that failed is abandoned, so nothing on its stack may own
/// memory.
struct Message {
  char text[800] = {};

  /// Appends like printf; what does not fit is cut.
  __attribute__((format(printf, 2, 3))) Message& add(const char* format, ...) {
    const std::size_t used = std::strlen(text);
    std::va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(text + used, sizeof text - used, format, arguments);
    va_end(arguments);
    return *this;
  }
};

/// A Message made like printf.
__attribute__((format(printf, 1, 2))) inline Message message(const char* format, ...) {
  Message result;
  std::va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(result.text, sizeof result.text, format, arguments);
  va_end(arguments);
  return result;
}

}  // namespace typeformer
