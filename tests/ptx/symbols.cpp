#include "symbols.hpp"

#include <cxxabi.h>
#include <elf.h>
#include <link.h>

#include <cctype>
#include <cstdlib>
#include <regex>
#include <vector>

#include "module.hpp"

namespace ptx {
namespace {

/// Offsets [first, end) of the name whose length stands at `at`; end is 0 when none does.
std::pair<std::size_t, std::size_t> name_at(const std::string& text, std::size_t at) {
  std::size_t digits = at;
  while (digits < text.size() && std::isdigit(static_cast<unsigned char>(text[digits]))) ++digits;
  if (digits == at || digits - at > 6) return {0, 0};
  const std::size_t end = digits + static_cast<std::size_t>(std::stoul(text.substr(at, digits - at)));
  return end > text.size() ? std::pair<std::size_t, std::size_t>{0, 0} : std::pair{digits, end};
}

/// Cuts the component after every `prefix` that begins as `begin`, or puts something else in its place.
std::string replace_components(std::string text, const std::string& prefix, const std::string& begin,
                               const std::string& by) {
  for (std::size_t at = 0; (at = text.find(prefix, at)) != text.npos;) {
    at += prefix.size();
    const auto [first, end] = name_at(text, at);
    if (end && text.compare(first, begin.size(), begin) == 0) text.replace(at, end - at, by);
  }
  return text;
}

std::uintptr_t load_address() {
  std::uintptr_t address = 0;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* result) {
        *static_cast<std::uintptr_t*>(result) = info->dlpi_addr;
        return 1;  // the program itself comes first
      },
      &address);
  return address;
}

}  // namespace

std::string common_name(const std::string& mangled) {
  const std::string name = replace_components(mangled, "10typeformer", "v", "");
  std::string common;
  for (std::size_t at = 0; at < name.size();) {
    const bool starts = std::isdigit(static_cast<unsigned char>(name[at])) && at > 0 &&
                        !std::isdigit(static_cast<unsigned char>(name[at - 1]));
    const auto [first, end] = starts ? name_at(name, at) : std::pair<std::size_t, std::size_t>{0, 0};
    if (end && name.compare(first, 11, "_GLOBAL__N_") == 0) {
      common += "12_GLOBAL__N_1";
      at = end;
    } else {
      common += name[at++];
    }
  }
  return common;
}

std::string readable_name(const std::string& mangled) {
  int status = 0;
  char* text = abi::__cxa_demangle(mangled.c_str(), nullptr, nullptr, &status);
  std::string name = status == 0 ? text : mangled;
  std::free(text);
  // never destroyed: reports are written at exit
  static const auto& noise = *new std::regex("typeformer::(v\\w+::)?(cuda::detail::)?|^void |\\((\\w|::)+\\)(?=\\d)");
  name = std::regex_replace(name, noise, "");
  int depth = 0;
  for (std::size_t i = 0; i < name.size(); ++i) {
    depth += name[i] == '<' ? 1 : name[i] == '>' ? -1 : 0;
    if (name[i] == '(' && depth == 0 && name.compare(i, 11, "(anonymous ") != 0) return name.substr(0, i);
  }
  return name;
}

Symbols::Symbols() {
  const std::string file = read_file("/proc/self/exe");
  const auto* header = reinterpret_cast<const ElfW(Ehdr)*>(file.data());
  const auto* sections = reinterpret_cast<const ElfW(Shdr)*>(file.data() + header->e_shoff);
  const std::uintptr_t base = load_address();
  for (int i = 0; i < header->e_shnum; ++i) {
    if (sections[i].sh_type != SHT_SYMTAB) continue;
    const char* texts = file.data() + sections[sections[i].sh_link].sh_offset;
    const auto* symbols = reinterpret_cast<const ElfW(Sym)*>(file.data() + sections[i].sh_offset);
    for (std::size_t j = 0; j < sections[i].sh_size / sizeof *symbols; ++j)
      if ((symbols[j].st_info & 15) == STT_FUNC && symbols[j].st_value)
        names_[reinterpret_cast<const void*>(base + symbols[j].st_value)] = texts + symbols[j].st_name;
  }
}
std::string Symbols::name_of(const void* function) const {
  const auto found = names_.find(function);
  return found == names_.end() ? "" : found->second;
}

}  // namespace ptx
