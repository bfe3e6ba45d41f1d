/// Loads that must fail, or must be right: an Error that names what is wrong, and nothing allocated for the model.
/// Includes container_opener.hpp, which replaces operator new: include it in one source file of a program only.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "io/container_opener.hpp"
#include "io/load_files.hpp"

namespace load_files {

/// A CPU that counts what is allocated on it: the memory of models.
struct CountingDevice : cpu::Device {
  CountingDevice() : cpu::Device(1) {}
  int allocations = 0;
  void* allocate(std::size_t bytes) {
    ++allocations;
    return cpu::Device::allocate(bytes);
  }
};

/// Loads `path` as M: "" when every weight is right, else the Error's text, after nothing was allocated for a model.
template <class M>
std::string outcome(const std::filesystem::path& path, const Checkpoint& right, const LoadOptions& options = {}) {
  CountingDevice device;
  const std::size_t before = container_files::live_bytes;
  container_files::peak_bytes = before;
  try {
    const auto model = load<M>(device, path, options);
    return differing(model, right) == 0 ? "" : "other weights";
  } catch (const Error& error) {
    CHECK_MESSAGE(device.allocations == 0, error.what());
    CHECK_MESSAGE(container_files::peak_bytes - before < (std::size_t{1} << 21), error.what());
    return error.what();
  }
}

/// Whether the text contains one of the words.
inline bool names_one_of(const std::string& text, const std::vector<std::string>& words) {
  for (const std::string& word : words)
    if (text.find(word) != std::string::npos) return true;
  return false;
}

/// Values to put in place of a config's: other numbers, other kinds.
inline std::vector<Json> other_values(const Json& value) {
  std::vector<Json> others{"nonsense", Json::array(), Json::object(), true, false, 3, -1, 2.5, -0.001, 1e300};
  if (value.is_number_integer()) {
    const auto number = value.get<std::int64_t>();
    for (const std::int64_t other : {number + 1, number - 1, number * 2, std::int64_t{0}, std::int64_t{1} << 31,
                                     std::int64_t{1} << 40, std::numeric_limits<std::int64_t>::min()})
      others.push_back(other);
    others.push_back(std::numeric_limits<std::uint64_t>::max());
    others.push_back(std::to_string(number));
  } else if (value.is_number()) {
    const auto number = value.get<double>();
    for (const double other : {number * 1.000001, -number, 0., number * 2}) others.push_back(other);
  } else if (value.is_string()) {
    for (const char* other : {"", "gelu", "relu", "gated-silu", "silu", "llama3", "yarn", "dynamic", "gpt2", "llama"})
      others.push_back(other);
  } else if (value.is_array()) {
    Json reversed = value, longer = value, shorter = value, numbers = value;
    std::reverse(reversed.begin(), reversed.end());
    longer.push_back(value.at(0));
    shorter.erase(shorter.size() - 1);
    numbers[0] = 1;
    for (const Json& other : {reversed, longer, shorter, numbers}) others.push_back(other);
  }
  std::erase_if(others, [&](const Json& other) { return other == value && other.type() == value.type(); });
  return others;
}

}  // namespace load_files
