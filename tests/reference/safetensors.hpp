/// A minimal reader of safetensors files for tests, independent of the library's: F32, F64, BF16 and I64 as double.
#pragma once
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "tensor.hpp"

namespace reference {

inline std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("reference: cannot open " + path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

/// bf16: the upper half of a float.
struct UpperHalf {
  std::uint16_t bits;
  explicit operator double() const { return static_cast<double>(std::bit_cast<float>(std::uint32_t{bits} << 16)); }
};

template <class Stored>
void copy_numbers(const std::string& bytes, std::size_t begin, std::vector<double>& to) {
  static_assert(std::endian::native == std::endian::little);
  for (std::size_t i = 0; i < to.size(); ++i) {
    Stored number;
    if (begin + (i + 1) * sizeof number > bytes.size()) throw std::runtime_error("reference: truncated safetensors");
    std::memcpy(&number, bytes.data() + begin + i * sizeof number, sizeof number);
    to[i] = static_cast<double>(number);
  }
}

/// Every tensor of the file by its name.
inline std::map<std::string, Tensor<double>> read_safetensors(const std::string& path) {
  const std::string bytes = read_file(path);
  std::uint64_t header = 0;
  if (bytes.size() < sizeof header) throw std::runtime_error("reference: no safetensors header in " + path);
  std::memcpy(&header, bytes.data(), sizeof header);
  std::map<std::string, Tensor<double>> tensors;
  const nlohmann::json table = nlohmann::json::parse(bytes.substr(sizeof header, header));
  for (const auto& [name, entry] : table.items()) {
    if (name == "__metadata__") continue;
    Tensor<double> tensor(entry.at("shape").get<std::vector<std::size_t>>());
    const std::size_t begin = sizeof header + header + entry.at("data_offsets").at(0).get<std::size_t>();
    const std::string type = entry.at("dtype");
    if (type == "F32") {
      copy_numbers<float>(bytes, begin, tensor.data);
    } else if (type == "F64") {
      copy_numbers<double>(bytes, begin, tensor.data);
    } else if (type == "BF16") {
      copy_numbers<UpperHalf>(bytes, begin, tensor.data);
    } else if (type == "I64") {
      copy_numbers<std::int64_t>(bytes, begin, tensor.data);
    } else {
      throw std::runtime_error("reference: " + name + " has the type " + type);
    }
    tensors[name] = tensor;
  }
  return tensors;
}

}  // namespace reference
