// The interpreter's arithmetic against nvcc's: table.cu has every expression on constants and on numbers from memory.
#include <doctest/doctest.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>

#include "module.hpp"

namespace {

using namespace ptx;

constexpr u32 count = 10;

/// Parts of a name between double underscores.
std::vector<std::string> split(const std::string& name) {
  std::vector<std::string> parts;
  std::size_t first = 0;
  for (std::size_t at; (at = name.find("__", first)) != name.npos; first = at + 2)
    parts.push_back(name.substr(first, at - first));
  parts.push_back(name.substr(first));
  return parts;
}
std::size_t bytes_of(const std::string& type) { return static_cast<std::size_t>(std::atoi(type.c_str() + 1)) / 8; }

/// Names of instructions other than those that only move and address.
std::set<std::string> arithmetic(const std::map<std::string, u64>& before, const std::map<std::string, u64>& after) {
  std::set<std::string> names;
  for (const auto& [name, times] : after) {
    const auto found = before.find(name);
    if (found != before.end() && found->second == times) continue;
    const std::string word = name.substr(0, name.find('.'));
    if (word != "mov" && word != "st" && word != "ld" && word != "ret" && word != "cvta") names.insert(name);
  }
  return names;
}

struct Table {
  Module module{read_file(std::getenv("TYPEFORMER_PTX"))};
  std::map<std::string, std::vector<u8>> inputs;
  std::set<std::string> covered, not_folded;

  std::vector<u8> launch(const std::string& entry, std::size_t bytes, u32 threads, const void* from = nullptr) {
    std::vector<u8> to(bytes);
    module.buffers.add(to.data(), bytes, "to");
    if (from)
      module.launch(entry, {1}, {threads}, 0, to.data(), from);
    else
      module.launch(entry, {1}, {threads}, 0, to.data());
    module.buffers.remove(to.data());
    return to;
  }

  void check(const std::string& folded) {
    const auto parts = split(folded);
    const std::string opaque = "opaque" + folded.substr(std::strlen("folded"));
    const std::size_t bytes = bytes_of(parts[2]);
    CAPTURE(folded);
    if (!inputs.count(parts[1])) {
      inputs[parts[1]] = launch("inputs__" + parts[1], count * bytes_of(parts[1]), 1);
      module.buffers.add(inputs[parts[1]].data(), inputs[parts[1]].size(), "from");
    }
    const auto before = module.statistics.instructions;
    const auto expected = launch(folded, count * count * bytes, 1);
    const auto between = module.statistics.instructions;
    const auto ours = launch(opaque, count * count * bytes, count * count, inputs[parts[1]].data());
    // what nvcc did not fold the interpreter computed twice: that compares nothing
    if (!arithmetic(before, between).empty()) {
      not_folded.insert(folded);
      return;
    }
    for (const std::string& name : arithmetic(between, module.statistics.instructions)) covered.insert(name);
    // the ISA puts -0 below +0, where nvcc takes either
    const bool ordered_zeros = parts[1][0] == 'f' && (parts[3] == "min" || parts[3] == "max");
    for (u32 i = 0; i < count * count; ++i) {
      u64 a = 0, b = 0;
      std::memcpy(&a, expected.data() + i * bytes, bytes);
      std::memcpy(&b, ours.data() + i * bytes, bytes);
      if (a != b && !both_nan(parts[2], a, b) && !(ordered_zeros && ((a | b) << (65 - 8 * bytes)) == 0))
        FAIL_CHECK(folded << ": value " << i / count << ", " << i % count << ": nvcc has " << a << ", ours is " << b);
    }
  }
  static bool both_nan(const std::string& type, u64 a, u64 b) {
    const auto is_nan = [&](u64 word) {
      if (type == "f32") return (word & 0x7fffffff) > 0x7f800000;
      return type == "f64" && (word & 0x7fffffffffffffff) > 0x7ff0000000000000;
    };
    return is_nan(a) && is_nan(b);
  }
};

TEST_CASE("the interpreter computes what nvcc folds") {
  Table table;
  int checked = 0;
  for (const std::string& entry : table.module.entries())
    if (entry.rfind("folded__", 0) == 0) {
      table.check(entry);
      ++checked;
    }
  const std::size_t compared = static_cast<std::size_t>(checked) - table.not_folded.size();
  std::printf("%zu of %d expressions were folded; %zu instructions compared:", compared, checked, table.covered.size());
  for (const std::string& name : table.covered) std::printf(" %s", name.c_str());
  std::printf("\nnot folded:");
  for (const std::string& name : table.not_folded) std::printf(" %s", name.c_str());
  std::printf("\n");
  CHECK(compared >= 150);
  CHECK(table.covered.size() >= 100);
}

}  // namespace
