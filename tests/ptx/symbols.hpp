/// Names of kernels: the host program's symbols, and what makes them comparable with nvcc's.
#pragma once
#include <map>
#include <string>

namespace ptx {

/// A mangled name without what differs between the host layer and nvcc: the inline namespace of the library, and the
/// number that nvcc gives to an anonymous namespace.
std::string common_name(const std::string& mangled);

/// As in C++, without the library's namespaces, results and parameters.
std::string readable_name(const std::string& mangled);

/// Mangled names of this program's functions by address, local ones too.
class Symbols {
 public:
  Symbols();
  /// Empty when there is no function.
  std::string name_of(const void* function) const;

 private:
  std::map<const void*, std::string> names_;
};

}  // namespace ptx
