// Opens damaged container files and checks what every opening must keep to: an Error that names the file or a file that
// can be used in full, memory in proportion to the file, no hang. Replaces operator new of the program that includes
// it, to count: include it in one source file of a program only.
#pragma once
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <new>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "io/container_files.hpp"
#include "typeformer/core/error.hpp"
#include "typeformer/io/gguf.hpp"
#include "typeformer/io/safetensors.hpp"

namespace container_files {

// Live and largest total of operator new since watch() began, in bytes.
inline std::size_t live_bytes = 0, peak_bytes = 0;

inline constexpr std::size_t size_field = alignof(std::max_align_t);

}  // namespace container_files

[[gnu::noinline]] void* operator new(std::size_t size) {
  auto* const memory = static_cast<std::byte*>(std::malloc(size + container_files::size_field));
  if (memory == nullptr) throw std::bad_alloc();
  std::memcpy(memory, &size, sizeof size);
  container_files::live_bytes += size;
  container_files::peak_bytes = std::max(container_files::peak_bytes, container_files::live_bytes);
  return memory + container_files::size_field;
}

[[gnu::noinline]] void operator delete(void* memory) noexcept {
  if (memory == nullptr) return;
  auto* const begin = static_cast<std::byte*>(memory) - container_files::size_field;
  std::size_t size = 0;
  std::memcpy(&size, begin, sizeof size);
  container_files::live_bytes -= size;
  std::free(begin);
}

[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { operator delete(memory); }

namespace container_files {

namespace io = typeformer::io;

// Reads all that the file offers. Values of damaged files may be anything; reading them must be defined.
inline void use(const io::StoredTensor& tensor) {
  if (tensor.format->decode == nullptr) return;
  std::array<float, 512> numbers;
  for (std::uint64_t first = 0; first < tensor.elements(); first += numbers.size())
    io::read_floats(tensor, first, std::min<std::uint64_t>(numbers.size(), tensor.elements() - first), numbers.data());
}

inline void use(const io::GgufFile& file) {
  for (const io::GgufEntry& entry : file.metadata()) {
    const auto ignore_error = [](auto read) {
      try {
        read();
      } catch (const typeformer::Error&) {
      }
    };
    ignore_error([&] { io::value_of<std::uint64_t>(entry); });
    ignore_error([&] { io::value_of<double>(entry); });
    ignore_error([&] { io::value_of<std::string>(entry); });
    ignore_error([&] { io::value_of<std::vector<std::int64_t>>(entry); });
    ignore_error([&] { io::value_of<std::vector<std::string_view>>(entry); });
  }
  for (const io::StoredTensor& tensor : file.tensors()) use(tensor);
}

inline void use(const io::SafetensorsFile& file) {
  for (const io::StoredTensor& tensor : file.tensors()) use(tensor);
}

class Opener {
 public:
  // "" when the file loads, else the Error's text. Checks allocation, time, and that the Error names the file.
  template <class File>
  std::string open(const std::string& bytes) {
    write(path_, bytes);
    const std::size_t before = live_bytes;
    peak_bytes = live_bytes;
    const auto start = std::chrono::steady_clock::now();
    std::string text;
    try {
      const File file(path_);
      check_cost(before, bytes.size(), start);
      use(file);
    } catch (const typeformer::Error& error) {
      check_cost(before, bytes.size(), start);
      text = error.what();
      CHECK(contains(text, path_.native()));
      CHECK(text.size() < 1000);
    }
    return text;
  }
  std::string gguf(const std::string& bytes) { return open<io::GgufFile>(bytes); }
  std::string tensors(const std::string& bytes) { return open<io::SafetensorsFile>(bytes); }

 private:
  // Small files need some memory for paths and messages, whatever their size.
  void check_cost(std::size_t before, std::size_t size, std::chrono::steady_clock::time_point start) {
    const std::size_t peak = peak_bytes - before;
    CHECK(peak <= 16 * size + 8192);
    CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(5));
  }

  Folder folder_;
  std::filesystem::path path_ = folder_ / "file";
};

inline constexpr std::uint64_t extremes[] = {0,
                                             1,
                                             std::uint64_t{1} << 31,
                                             (std::uint64_t{1} << 32) - 1,
                                             std::uint64_t{1} << 60,
                                             (std::uint64_t{1} << 61) + 1,
                                             std::uint64_t{1} << 63,
                                             ~std::uint64_t{0} - 7,
                                             ~std::uint64_t{0}};

// Bytes overwritten at random places by values that tend to matter.
inline std::string damaged(std::string bytes, std::mt19937_64& random, std::size_t limit) {
  const std::size_t changes = 1 + random() % 4;
  for (std::size_t i = 0; i < changes; ++i) {
    const std::size_t at = random() % std::min(limit, bytes.size());
    switch (random() % 4) {
      case 0:
        bytes[at] = static_cast<char>(random());
        break;
      case 1:
        bytes[at] = static_cast<char>(bytes[at] ^ (1 << random() % 8));
        break;
      case 2:
        bytes[at] = "\0\xff\x7f\x80"[random() % 4];
        break;
      default: {
        const std::uint64_t value = extremes[random() % std::size(extremes)];
        std::memcpy(bytes.data() + at, &value, std::min<std::size_t>(8, bytes.size() - at));
      }
    }
  }
  return bytes;
}

}  // namespace container_files
