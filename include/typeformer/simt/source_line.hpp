/// From an instruction's address to its source line, with the help of binutils' addr2line.
#pragma once
#include <dlfcn.h>

#include <cstdio>
#include <string>

#include "typeformer/core/annotate.hpp"

namespace typeformer::inline TYPEFORMER_ABI::simt {

/// The frames (innermost first) that were inlined at the address, as "file.cuh:12 < caller.cuh:30": at most `depth` of
/// them, without those of this layer and of the standard library. The address itself when it has no line.
inline std::string source_line(const void* address, int depth = 2) {
  char text[64];
  std::snprintf(text, sizeof text, "address %p", address);
  Dl_info object{};
  if (!dladdr(address, &object) || !object.dli_fname) return text;
  const auto offset = static_cast<const char*>(address) - 1 - static_cast<const char*>(object.dli_fbase);
  char command[1024];
  std::snprintf(command, sizeof command, "addr2line -i -e '%s' 0x%lx 2>/dev/null", object.dli_fname,
                static_cast<unsigned long>(offset));
  std::FILE* pipe = popen(command, "r");
  if (!pipe) return text;
  std::string result;
  char line[1024];
  for (int shown = 0; std::fgets(line, sizeof line, pipe);) {
    std::string frame(line);
    frame.resize(frame.find_first_of("\n "));
    const bool foreign = frame.find("typeformer/simt/") != frame.npos || frame.find("/include/c++/") != frame.npos;
    if (foreign || frame[0] == '?' || shown == depth) continue;
    if (const auto slash = frame.rfind('/'); slash != frame.npos) frame.erase(0, slash + 1);
    result += (shown++ ? " < " : "") + frame;
  }
  pclose(pipe);
  return result.empty() ? text : result;
}

}  // namespace typeformer
