// test: sanitize
// test: timeout=600
// GGUF files that lie: every field overwritten, every truncation, bytes changed at random, and what the Errors say.
#include <doctest/doctest.h>

#include <cstdint>
#include <iterator>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "io/container_files.hpp"
#include "io/container_opener.hpp"

namespace {

using container_files::contains;
using container_files::damaged;
using container_files::extremes;
using container_files::Field;
using container_files::Gguf;
using container_files::gguf_text;
using container_files::Opener;
using container_files::raw;

}  // namespace

TEST_CASE("GGUF: every truncation is refused, apart from padding") {
  Opener opener;
  const std::string whole = container_files::small_gguf().bytes;
  CHECK(opener.gguf(whole) == "");
  for (std::size_t length = 0; length < whole.size(); ++length) {
    CAPTURE(length);
    CHECK(opener.gguf(whole.substr(0, length)) != "");
  }
  CHECK(opener.gguf(whole + 'x') != "");
}

TEST_CASE("GGUF: every number of the header, overwritten") {
  Opener opener;
  const Gguf file = container_files::small_gguf();
  for (const Field& field : file.fields) {
    const std::uint64_t old = field.get(file.bytes);
    std::vector<std::uint64_t> values(std::begin(extremes), std::end(extremes));
    values.insert(values.end(), {old - 1, old + 1, old * 2, old + 32, old - 32, 13, 99});
    for (std::uint64_t value : values) {
      if (field.size == 4) value &= 0xffffffffu;
      if (value == old) continue;
      CAPTURE(field.name);
      CAPTURE(value);
      const std::string text = opener.gguf(field.with(file.bytes, value));
      // What remains consistent with the file's size is another correct file: version 2, a type of equal size, rows
      // whose end lies in the padding.
      const bool may_load = (field.name == "version" && value == 2) || field.name.find("type") != std::string::npos ||
                            (field.name == "dimension" && value < old);
      if (!may_load) CHECK(text != "");
    }
  }
}

TEST_CASE("GGUF: every byte of the header set to 0, 255, and with each bit turned") {
  Opener opener;
  const std::string whole = container_files::small_gguf().bytes;
  for (std::size_t at = 0; at < whole.size() - 640; ++at) {
    std::vector<char> values{0, static_cast<char>(255)};
    for (int bit = 0; bit < 8; ++bit) values.push_back(static_cast<char>(whole[at] ^ (1 << bit)));
    for (const char value : values) {
      std::string bytes = whole;
      bytes[at] = value;
      opener.gguf(bytes);
    }
  }
}

TEST_CASE("GGUF: random damage, 20,000 files") {
  Opener opener;
  const std::string whole = container_files::small_gguf().bytes;
  std::mt19937_64 random(1);
  int loaded = 0;
  for (int i = 0; i < 20000; ++i) loaded += opener.gguf(damaged(whole, random, whole.size() - 640)).empty();
  CHECK(loaded > 100);  // names and values may change: the rest of the reader is reached as well
  CHECK(loaded < 10000);
}

TEST_CASE("GGUF: what is wrong is named") {
  Opener opener;
  const auto refused = [&](const std::string& bytes, std::string_view part) {
    CHECK(contains(opener.gguf(bytes), part));
  };
  const Gguf good = container_files::small_gguf();
  const auto with = [&](std::string_view name, std::uint64_t value, std::size_t skip = 0) {
    return good.find(name, skip).with(good.bytes, value);
  };
  refused("", "header: expected at least 24 bytes, got 0");
  refused("GGML" + good.bytes.substr(4), "magic: expected 'GGUF', got 'GGML'");
  refused(with("version", 1), "version: expected 2 or 3, got 1");
  refused(with("version", 0), "version: expected 2 or 3, got 0");
  refused(with("version", 4), "version: expected 2 or 3, got 4");
  refused(with("version", 0x03000000), "expected a little-endian file, got a big-endian one");
  refused(with("tensor count", std::uint64_t{1} << 60), "tensor count: expected within the");
  refused(with("metadata count", std::uint64_t{1} << 60), "metadata count: expected within the");
  refused(with("tensor count", 2), "data: expected 608 bytes, the end of the last tensor");
  refused(with("key length", ~std::uint64_t{0}), "metadata key 0: expected within the");
  refused(with("key length", 0), "metadata key 0: expected 1 to 65535 characters, got 0");
  refused(with("value type", 13), "'general.architecture': expected a value type from 0 to 12, got 13");
  refused(with("element type", 9), "'tokenizer.tokens': expected an array of values, got an array of arrays");
  refused(with("array count", std::uint64_t{1} << 60), "'tokenizer.tokens': expected within the");
  refused(with("array count", std::uint64_t{1} << 62, 1), "'tokenizer.types': expected within the");
  refused(with("tensor name length", 65), "name of tensor 0: expected 1 to 64 characters, got 65");
  refused(with("dimensions", 0), "number of dimensions of tensor 'a': expected 1 to 4, got 0");
  refused(with("dimensions", 5), "number of dimensions of tensor 'a': expected 1 to 4, got 5");
  refused(with("dimension", 0, 1), "dimension 1 of tensor 'a': expected at least 1, got 0");
  refused(with("dimension", std::uint64_t{1} << 63), "shape of tensor 'a': expected a size in 64 bits, got more");
  refused(with("dimension", std::uint64_t{1} << 40), "data of tensor 'a': expected within the 640 bytes");
  refused(with("dimension", 500, 2), "row of tensor 'b': expected a multiple of 32 numbers (Q8_0), got 500");
  refused(with("tensor type", 4), "type of tensor 'a': expected a ggml tensor type, got 4");
  refused(with("tensor type", 1000), "type of tensor 'a': expected a ggml tensor type, got 1000");
  refused(with("tensor offset", 65, 1), "offset of tensor 'b': expected a multiple of 32, got 65");
  refused(with("tensor offset", 32, 1), "offset of tensor 'b': expected 64, where the tensor before ends, got 32");
  refused(with("tensor offset", 128, 1), "data of tensor 'b': expected within the 640 bytes of data");
  refused(with("tensor offset", 96, 1), "offset of tensor 'b': expected 64, where the tensor before ends, got 96");
  refused(with("tensor offset", 0, 1), "offset of tensor 'b': expected 64, where the tensor before ends, got 0");
  refused(with("tensor offset", ~std::uint64_t{31}, 2), "data of tensor 'c': expected within the 640 bytes of data");

  const auto small = [](auto fill) {
    Gguf file;
    fill(file);
    file.pad();
    return file.bytes + std::string(64, '\0');
  };
  refused(small([](Gguf& file) { file.header(0, 2), file.entry("x", 0, "1"), file.entry("x", 0, "1"); }),
          "metadata 'x': expected one entry, got several");
  refused(small([](Gguf& file) { file.header(2, 0), file.tensor("x", {8}, 0, 0), file.tensor("x", {8}, 0, 32); }),
          "tensor 'x': expected one of that name, got several");
  refused(small([](Gguf& file) { file.header(0, 1), file.entry("x", 7, "\2"); }),
          "'x': expected bool values of 0 or 1");
  refused(small([](Gguf& file) { file.header(0, 1), file.array("x", 7, 2, "\1\3"); }),
          "'x': expected bool values of 0 or 1");
  refused(small([](Gguf& file) { file.header(0, 1), file.entry("x", 8, raw(std::uint64_t{1} << 40)); }),
          "metadata 'x': expected within the");
  for (const std::uint32_t alignment : {0u, 1u, 12u, 33u})
    refused(small([&](Gguf& file) { file.header(0, 1), file.entry("general.alignment", 4, raw(alignment)); }),
            "general.alignment: expected a multiple of 8");
  refused(small([](Gguf& file) { file.header(0, 1), file.entry("general.alignment", 10, raw(std::uint64_t{32})); }),
          "general.alignment: expected uint32, got uint64");
  refused(small([](Gguf& file) { file.header(0, 1), file.array("general.alignment", 4, 1, raw(std::uint32_t{32})); }),
          "expected uint32, got an array of uint32");
  refused(small([](Gguf& file) {
            file.header(1, 1), file.entry("general.alignment", 4, raw(0xfffffff8u)), file.tensor("x", {8}, 0, 0);
          }),
          "data of tensor 'x': expected within the 0 bytes");
  CHECK(opener.gguf(small(
            [](Gguf& file) { file.header(2, 0), file.tensor("x", {8}, 0, 32), file.tensor("y", {8}, 0, 0); })) == "");
  refused(small([](Gguf& file) { file.header(2, 0), file.tensor("x", {8}, 0, 0), file.tensor("y", {8}, 0, 0); }),
          "offset of tensor 'y': expected 32");
  refused(small([](Gguf& file) { file.header(0, 1), file.entry(std::string(65536, 'k'), 0, "1"); }),
          "1 to 65535 characters, got 65536");
  refused(
      small([](Gguf& file) { file.header(0, 2), file.entry("\x1b[2J\n", 0, "1"), file.entry("\x1b[2J\n", 0, "1"); }),
      "metadata '?[2J?'");
}

TEST_CASE("GGUF: many entries and tensors cost memory in proportion") {
  Opener opener;
  Gguf file;
  constexpr std::uint32_t count = 20000;
  file.header(0, count);
  for (std::uint32_t i = 0; i < count; ++i) file.entry(std::to_string(i), 0, "1");
  CHECK(opener.gguf(file.bytes) == "");
  Gguf words;
  words.header(0, 1);
  std::string values;
  for (std::uint32_t i = 0; i < count; ++i) values += gguf_text("");
  words.array("x", 8, count, values);
  CHECK(opener.gguf(words.bytes) == "");
  Gguf many;
  many.header(count, 0);
  for (std::uint32_t i = 0; i < count; ++i) many.tensor(std::to_string(i), {1}, 0, i * 32);
  many.pad();
  many.bytes += std::string(std::size_t{count} * 32, '\0');
  CHECK(opener.gguf(many.bytes) == "");
}
