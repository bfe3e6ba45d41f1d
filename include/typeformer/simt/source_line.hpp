/// From instructions' addresses to source lines, with the help of binutils' addr2line.
#pragma once
#include <dlfcn.h>

#include <cstdio>
#include <string>
#include <vector>

#include "typeformer/core/annotate.hpp"

namespace typeformer::inline TYPEFORMER_ABI::simt {

/// For each return address the frames that were inlined there (innermost first), as "file.cuh:12 < caller.cuh:30": at
/// most `depth` of them, without those of this layer and of the standard library. An address without a line stays a
/// number.
inline std::vector<std::string> source_lines(const std::vector<const void*>& addresses, int depth = 2) {
  std::vector<std::string> result;
  std::string command;
  for (const void* address : addresses) {
    char text[64];
    std::snprintf(text, sizeof text, "address %p", address);
    result.emplace_back(text);
    Dl_info object{};
    const bool found = dladdr(address, &object) && object.dli_fname;
    if (command.empty() && found) command = std::string("addr2line -a -i -e '") + object.dli_fname + "'";
    const auto offset = found ? static_cast<const char*>(address) - 1 - static_cast<const char*>(object.dli_fbase) : 0;
    std::snprintf(text, sizeof text, " 0x%lx", static_cast<unsigned long>(offset));
    command += text;
  }
  std::FILE* pipe = popen((command + " 2>/dev/null").c_str(), "r");
  if (!pipe) return result;
  char line[1024];
  std::size_t index = 0;  // of the address whose frames follow, plus one
  for (int shown = 0; std::fgets(line, sizeof line, pipe);) {
    std::string frame(line);
    frame.resize(frame.find_first_of("\n "));
    if (frame.starts_with("0x")) {
      ++index;
      shown = 0;
      continue;
    }
    const bool foreign = frame.find("typeformer/simt/") != frame.npos || frame.find("/include/c++/") != frame.npos;
    if (foreign || frame[0] == '?' || shown == depth || index == 0 || index > result.size()) continue;
    if (const auto slash = frame.rfind('/'); slash != frame.npos) frame.erase(0, slash + 1);
    if (shown++ == 0)
      result[index - 1] = frame;
    else
      result[index - 1] += " < " + frame;
  }
  pclose(pipe);
  return result;
}

/// The demangled signature of the function that starts at the address, or an empty text.
inline std::string function_signature(const void* address) {
  Dl_info object{};
  if (!dladdr(address, &object) || !object.dli_fname) return "";
  char offset[32];
  std::snprintf(
      offset, sizeof offset, " 0x%lx",
      static_cast<unsigned long>(static_cast<const char*>(address) - static_cast<const char*>(object.dli_fbase)));
  const std::string command = std::string("addr2line -C -f -e '") + object.dli_fname + "'" + offset + " 2>/dev/null";
  std::FILE* pipe = popen(command.c_str(), "r");
  if (!pipe) return "";
  char line[2048];
  std::string result;
  if (std::fgets(line, sizeof line, pipe)) result = line;
  while (std::fgets(line, sizeof line, pipe)) continue;
  pclose(pipe);
  while (!result.empty() && (result.back() == '\n' || result.back() == ' ')) result.pop_back();
  return result.starts_with("?") ? "" : result;
}

inline std::string source_line(const void* address) { return source_lines({address})[0]; }

}  // namespace typeformer
