// Builds safetensors and GGUF files byte by byte for the container tests, and remembers where each field lies.
#pragma once
#include <doctest/doctest.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "typeformer/core/error.hpp"
#include "typeformer/io/stored_tensor.hpp"

namespace container_files {

// An empty folder of its own, removed at the end.
class Folder {
 public:
  Folder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "typeformer-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("no temporary folder");
    path_ = pattern;
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() { std::filesystem::remove_all(path_); }
  std::filesystem::path operator/(std::string_view name) const { return path_ / name; }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

inline std::filesystem::path write(const std::filesystem::path& path, std::string_view bytes) {
  std::filesystem::remove(path);  // overwriting in place would wait for the disk on some file systems
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  if (!file.flush()) throw std::runtime_error("cannot write " + path.string());
  return path;
}

inline std::string read(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

template <class T>
std::string raw(T value) {
  std::string bytes(sizeof value, '\0');
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

// A number in a file that a test overwrites.
struct Field {
  std::string name;
  std::size_t offset, size;  // 4 or 8 bytes

  std::uint64_t get(const std::string& bytes) const {
    std::uint64_t value = 0;
    std::memcpy(&value, bytes.data() + offset, size);
    return value;
  }
  std::string with(std::string bytes, std::uint64_t value) const {
    std::memcpy(bytes.data() + offset, &value, size);
    return bytes;
  }
};

// A GGUF file that grows at its end.
struct Gguf {
  std::string bytes;
  std::vector<Field> fields;

  void u32(const std::string& name, std::uint32_t value) { field(name, raw(value)); }
  void u64(const std::string& name, std::uint64_t value) { field(name, raw(value)); }
  void text(const std::string& name, std::string_view characters) {
    u64(name + " length", characters.size());
    bytes += characters;
  }
  void header(std::uint64_t tensors, std::uint64_t entries, std::uint32_t version = 3) {
    bytes += "GGUF";
    u32("version", version);
    u64("tensor count", tensors);
    u64("metadata count", entries);
  }
  // value: the bytes after the type.
  void entry(std::string_view key, std::uint32_t type, std::string_view value) {
    text("key", key);
    u32("value type", type);
    bytes += value;
  }
  void array(std::string_view key, std::uint32_t type, std::uint64_t count, std::string_view values) {
    text("key", key);
    u32("array type", 9);
    u32("element type", type);
    u64("array count", count);
    bytes += values;
  }
  void tensor(std::string_view name, const std::vector<std::uint64_t>& dimensions, std::uint32_t type,
              std::uint64_t offset) {
    text("tensor name", name);
    u32("dimensions", static_cast<std::uint32_t>(dimensions.size()));
    for (const std::uint64_t length : dimensions) u64("dimension", length);
    u32("tensor type", type);
    u64("tensor offset", offset);
  }
  void pad(std::size_t alignment = 32) { bytes.append((alignment - bytes.size() % alignment) % alignment, '\0'); }
  const Field& find(std::string_view name, std::size_t skip = 0) const {
    for (const Field& field : fields)
      if (field.name == name && skip-- == 0) return field;
    throw std::runtime_error("no field " + std::string(name));
  }

 private:
  void field(const std::string& name, const std::string& value) {
    fields.push_back({name, bytes.size(), value.size()});
    bytes += value;
  }
};

// The string as GGUF stores it.
inline std::string gguf_text(std::string_view characters) {
  return raw(std::uint64_t{characters.size()}).append(characters);
}

// A correct file with metadata of every kind and three tensors whose bytes fill whole alignments:
// a F32 [2, 8] at 0, b Q8_0 [1, 512] at 64, c F16 [16] at 608.
inline Gguf small_gguf() {
  Gguf file;
  file.header(3, 6);
  file.entry("general.architecture", 8, gguf_text("llama"));
  file.entry("llama.block_count", 4, raw(std::uint32_t{30}));
  file.entry("llama.eps", 6, raw(1e-5f));
  file.entry("tokenizer.add_bos", 7, raw(std::uint8_t{1}));
  file.array("tokenizer.tokens", 8, 3, gguf_text("a") + gguf_text("") + gguf_text("the"));
  file.array("tokenizer.types", 5, 3, raw(std::int32_t{1}) + raw(std::int32_t{-2}) + raw(std::int32_t{3}));
  file.tensor("a", {8, 2}, 0, 0);
  file.tensor("b", {512, 1}, 8, 64);
  file.tensor("c", {16}, 1, 608);
  file.pad();
  for (int i = 0; i < 16; ++i) file.bytes += raw(static_cast<float>(i));
  for (int i = 0; i < 544 / 34; ++i) file.bytes += raw(std::uint16_t{0x3c00}) + std::string(32, static_cast<char>(i));
  for (int i = 0; i < 16; ++i) file.bytes += raw(std::uint16_t{0x4000});
  return file;
}

// A safetensors file of this header and data.
inline std::string safetensors(std::string_view header, std::string_view data = {}) {
  return raw(std::uint64_t{header.size()}).append(header).append(data);
}

// What the call's Error says.
template <class Call>
std::string message(Call call) {
  try {
    call();
  } catch (const typeformer::Error& error) {
    return error.what();
  }
  return "no Error";
}

inline bool contains(const std::string& text, std::string_view part) {
  if (text.find(part) != std::string::npos) return true;
  MESSAGE("not found: ", std::string(part), " in: ", text);
  return false;
}

inline std::vector<float> floats(const typeformer::io::StoredTensor& tensor) {
  std::vector<float> numbers(tensor.elements());
  typeformer::io::read_floats(tensor, 0, numbers.size(), numbers.data());
  return numbers;
}

}  // namespace container_files
