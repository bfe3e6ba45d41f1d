/// Names of kernels from their addresses, with the help of binutils' addr2line.
#pragma once
#include <map>
#include <mutex>

#include "typeformer/simt/source_line.hpp"

namespace typeformer::inline TYPEFORMER_ABI::simt {

/// A function's name out of its demangled signature: "norm_rows" of "void (anonymous namespace)::norm_rows<4>(float*)".
inline std::string plain_name(const std::string& signature) {
  std::string flat;  // without what stands in brackets
  int depth = 0;
  for (const char c : signature) {
    if (c == '<' || c == '(' || c == '[') ++depth;
    if (depth == 0) flat += c;
    if (c == '>' || c == ')' || c == ']') --depth;
  }
  while (!flat.empty() && flat.back() == ' ') flat.pop_back();
  const auto start = flat.find_last_of(": *&");
  return start == flat.npos ? flat : flat.substr(start + 1);
}

/// The name of the function at the address, or "kernel at 0x..." where the program has no symbols.
inline std::string kernel_name(const void* kernel) {
  static std::mutex& mutex = *new std::mutex;
  static auto& known = *new std::map<const void*, std::string>;
  const std::lock_guard lock(mutex);
  const auto [found, added] = known.try_emplace(kernel);
  if (added) found->second = plain_name(function_signature(kernel));
  if (found->second.empty()) {
    char text[64];
    std::snprintf(text, sizeof text, "kernel at %p", kernel);
    found->second = text;
  }
  return found->second;
}

}  // namespace typeformer
