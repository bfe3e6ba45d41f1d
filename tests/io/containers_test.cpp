// test: sanitize
// Correct files of both containers: values against gguf-py and safetensors (golden/make_quantized.py), the mapped file,
// the writer, folders with shards. Files that lie are in containers_hostile_*_test.cpp.
#include <doctest/doctest.h>
#include <sys/stat.h>

#include <bit>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "io/container_files.hpp"
#include "typeformer/core/scalar.hpp"
#include "typeformer/io/gguf.hpp"
#include "typeformer/io/mapped_file.hpp"
#include "typeformer/io/safetensors.hpp"
#include "typeformer/io/tensor_source.hpp"

namespace {

namespace io = typeformer::io;
using container_files::contains;
using container_files::floats;
using container_files::Folder;
using container_files::message;

std::filesystem::path golden(std::string_view name) {
  return std::filesystem::path(__FILE__).parent_path() / "golden" / name;
}

void check_equal_bits(const std::vector<float>& got, const std::vector<float>& expected) {
  REQUIRE(got.size() == expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    CAPTURE(i);
    CHECK(std::bit_cast<std::uint32_t>(got[i]) == std::bit_cast<std::uint32_t>(expected[i]));
  }
}

}  // namespace

TEST_CASE("each readable GGUF type equals gguf-py bit for bit, whole and in any part") {
  const io::GgufFile file(golden("quantized.gguf"));
  const io::SafetensorsFile expected(golden("quantized.safetensors"));
  REQUIRE(file.tensors().size() == 6);
  for (const io::StoredTensor& tensor : file.tensors()) {
    CAPTURE(tensor.name);
    CHECK(tensor.format->name == tensor.name);
    CHECK(tensor.shape == std::vector<std::uint64_t>{3, 64});
    const auto* const wanted = expected.find(tensor.name);
    REQUIRE(wanted != nullptr);
    const std::vector<float> numbers = floats(*wanted);
    check_equal_bits(floats(tensor), numbers);
    for (std::uint64_t first = 0; first <= 192; first += 7) {
      for (const std::uint64_t count : {0u, 1u, 5u, 31u, 32u, 33u, 65u, 100u}) {
        if (first + count > 192) continue;
        std::vector<float> part(count + 1, -7.0f);
        io::read_floats(tensor, first, count, part.data());
        CHECK(part[count] == -7.0f);
        part.pop_back();
        const auto begin = numbers.begin() + static_cast<std::ptrdiff_t>(first);
        check_equal_bits(part, std::vector<float>(begin, begin + static_cast<std::ptrdiff_t>(count)));
      }
    }
    float one = 0;
    CHECK(contains(message([&] { io::read_floats(tensor, 193, 0, &one); }), "a range within 192 elements"));
    CHECK(contains(message([&] { io::read_floats(tensor, 192, 1, &one); }), "1 elements from 192 on"));
    CHECK(contains(message([&] { io::read_floats(tensor, 1, std::numeric_limits<std::uint64_t>::max(), &one); }),
                   tensor.name));
  }
}

TEST_CASE("GGUF metadata of every type") {
  const io::GgufFile file(golden("quantized.gguf"));
  CHECK(file.version() == 3);
  CHECK(file.get<std::string>("general.architecture") == "test");
  CHECK(file.get<std::uint8_t>("test.uint8") == 200);
  CHECK(file.get<int>("test.int8") == -100);
  CHECK(file.get<std::int64_t>("test.uint16") == 60000);
  CHECK(file.get<std::int16_t>("test.int16") == -30000);
  CHECK(file.get<std::uint32_t>("test.uint32") == 4000000000u);
  CHECK(file.get<std::int32_t>("test.int32") == -2000000000);
  CHECK(file.get<std::uint64_t>("test.uint64") == (std::uint64_t{1} << 63) + 1);
  CHECK(file.get<std::int64_t>("test.int64") == -(std::int64_t{1} << 62));
  CHECK(file.get<float>("test.float32") == 1e-5f);
  CHECK(file.get<double>("test.float32") == 9.999999747378752e-06);
  CHECK(file.get<double>("test.float64") == 1e-5);
  CHECK(file.get<bool>("test.bool"));
  CHECK(file.get<std::string_view>("test.string") ==
        "gr\xc3\xbc\xc3\x9f"
        "e");
  CHECK(file.get<std::string_view>("test.empty").empty());
  CHECK(file.get<std::vector<std::string_view>>("test.strings") ==
        std::vector<std::string_view>{"a", "", "\xc4\xa0the"});
  CHECK(file.get<std::vector<std::int32_t>>("test.numbers") == std::vector<std::int32_t>{1, -2, 3});
  CHECK(file.get<std::vector<float>>("test.floats") == std::vector<float>{0.5f, -0.25f});
  CHECK(file.get<std::vector<bool>>("test.flags") == std::vector<bool>{true, false, true});
  CHECK_FALSE(file.find<int>("test.missing").has_value());
  CHECK(file.entry("test.missing") == nullptr);
}

TEST_CASE("a GGUF value of another kind or out of range is a named Error, never converted") {
  const io::GgufFile file(golden("quantized.gguf"));
  CHECK(contains(message([&] { file.get<int>("test.missing"); }), "'test.missing': expected an entry, got none"));
  CHECK(
      contains(message([&] { file.get<int>("test.uint32"); }), "an integer that fits 32 bits, got uint32 4000000000"));
  CHECK(contains(message([&] { file.get<std::int64_t>("test.uint64"); }), "uint64 9223372036854775809"));
  CHECK(contains(message([&] { file.get<unsigned>("test.int32"); }), "32 unsigned bits, got int32 -2000000000"));
  CHECK(contains(message([&] { file.find<int>("test.bool"); }), "got bool"));
  CHECK(contains(message([&] { file.find<bool>("test.uint8"); }), "expected bool, got uint8 200"));
  CHECK(contains(message([&] { file.find<float>("test.uint8"); }), "expected float32 or float64"));
  CHECK(contains(message([&] { file.find<int>("test.float32"); }), "got float32"));
  CHECK(contains(message([&] { file.find<std::string>("test.uint8"); }), "expected string"));
  CHECK(contains(message([&] { file.find<int>("test.string"); }), "got string"));
  CHECK(contains(message([&] { file.find<int>("test.numbers"); }), "got an array of int32"));
  CHECK(contains(message([&] { file.find<std::vector<int>>("test.int32"); }), "expected an array of an integer"));
  CHECK(contains(message([&] { file.find<std::vector<unsigned>>("test.numbers"); }), "got int32 -2 at index 1"));
  CHECK(contains(message([&] { file.find<std::vector<std::string>>("test.numbers"); }), "an array of string"));
}

TEST_CASE("safetensors types: rounding of F64, halves, scalars, empty tensors, types that are no floats") {
  const io::SafetensorsFile file(golden("plain.safetensors"));
  REQUIRE(file.tensors().size() == 10);
  for (const std::string name : {"F64", "F16", "BF16"}) {
    CAPTURE(name);
    REQUIRE(file.find(name) != nullptr);
    CHECK(file.find(name)->format->name == name);
    CHECK(file.find(name)->shape == file.find(name + ".float")->shape);
    check_equal_bits(floats(*file.find(name)), floats(*file.find(name + ".float")));
  }
  CHECK(file.find("scalar")->shape.empty());
  CHECK(floats(*file.find("scalar")) == std::vector<float>{2.5f});
  CHECK(file.find("nothing")->shape == std::vector<std::uint64_t>{0, 3});
  CHECK(floats(*file.find("nothing")).empty());
  CHECK(file.find("none") == nullptr);
  CHECK(contains(message([&] { floats(*file.find("I64")); }),
                 "'I64': expected a dtype that is readable as float, got unsupported dtype I64"));
  CHECK(contains(message([&] { floats(*file.find("BOOL")); }), "unsupported dtype BOOL"));
  REQUIRE(file.metadata().size() == 1);
  CHECK(file.metadata()[0] == std::pair<std::string, std::string>("made by", "safetensors"));
}

TEST_CASE("data at an odd address and a header with escapes and white space") {
  const Folder folder;
  std::string header = R"({ "a\u00e4\"" : {"data_offsets":[0,8], "shape":[2] , "dtype":"F32"} })";
  header.append((8 + 3 - header.size() % 8) % 8, ' ');  // the data begins at 8 k + 3
  const auto path = container_files::write(
      folder / "a.safetensors",
      container_files::safetensors(header, container_files::raw(1.5f) + container_files::raw(-2.0f)));
  const io::SafetensorsFile file(path);
  REQUIRE(file.find("a\xc3\xa4\"") != nullptr);
  CHECK(floats(file.tensors()[0]) == std::vector<float>{1.5f, -2.0f});
}

TEST_CASE("GGUF version 2, another alignment, missing padding at the end, no tensors") {
  const Folder folder;
  container_files::Gguf file;
  file.header(2, 1, 2);
  file.entry("general.alignment", 4, container_files::raw(std::uint32_t{8}));
  file.tensor("a", {3, 1, 1, 1}, 0, 0);
  file.tensor("b", {1}, 0, 16);
  file.pad(8);
  file.bytes += container_files::raw(1.0f) + container_files::raw(2.0f) + container_files::raw(3.0f) +
                std::string(4, '\0') + container_files::raw(4.0f);
  const io::GgufFile loaded(container_files::write(folder / "a.gguf", file.bytes));
  CHECK(loaded.version() == 2);
  CHECK(loaded.find_tensor("a")->shape == std::vector<std::uint64_t>{1, 1, 1, 3});
  CHECK(floats(*loaded.find_tensor("a")) == std::vector<float>{1.0f, 2.0f, 3.0f});
  CHECK(floats(*loaded.find_tensor("b")) == std::vector<float>{4.0f});
  CHECK(loaded.find_tensor("c") == nullptr);
  container_files::Gguf words;
  words.header(0, 1);
  words.entry("a", 0, "x");
  CHECK(io::GgufFile(container_files::write(folder / "b.gguf", words.bytes)).tensors().empty());
}

TEST_CASE("a tensor of a known but unreadable GGUF type is listed and named when read") {
  const Folder folder;
  container_files::Gguf file;
  file.header(1, 0);
  file.tensor("k", {256}, 12, 0);
  file.pad();
  file.bytes += std::string(144, '\1');
  const io::TensorSource source(container_files::write(folder / "k.gguf", file.bytes));
  CHECK(source.tensors()[0].type_name() == "Q4_K");
  CHECK_FALSE(source.tensors()[0].is_readable());
  CHECK(source.tensors()[0].elements() == 256);
  float number = 0;
  CHECK(contains(message([&] { source.tensors()[0].read_floats(0, 1, &number); }),
                 "'k': expected a dtype that is readable as float, got unsupported dtype Q4_K"));
}

TEST_CASE("mapped file: only regular files, moves, and a changed size is noticed") {
  const Folder folder;
  CHECK(contains(message([&] { io::MappedFile file(folder / "none"); }), "expected a file, got nothing of that name"));
  CHECK(contains(message([&] { io::MappedFile file(folder.path()); }), "got a directory"));
  REQUIRE(::mkfifo((folder / "fifo").c_str(), 0600) == 0);
  CHECK(contains(message([&] { io::MappedFile file(folder / "fifo"); }), "got a FIFO"));
  CHECK(contains(message([&] { io::MappedFile file("/dev/null"); }), "got a device"));
  CHECK(contains(message([&] { io::MappedFile file(folder / std::string(5000, 'x')); }), "map_file"));
  CHECK(io::MappedFile(container_files::write(folder / "empty", "")).bytes().empty());
  for (const char* const name : {"fifo", "empty"}) {
    CHECK(contains(message([&] { io::GgufFile file(folder / name); }), "expected"));
    CHECK(contains(message([&] { io::SafetensorsFile file(folder / name); }), "expected"));
  }

  const auto path = container_files::write(folder / "data", std::string(10000, 'a') + "z");
  io::MappedFile first(path);
  const auto* const address = first.bytes().data();
  io::MappedFile second(std::move(first));
  CHECK(second.bytes().data() == address);
  CHECK(first.bytes().empty());
  CHECK(contains(message([&] { first.check_unchanged(); }), "moved from"));
  first = std::move(second);
  CHECK(first.bytes().size() == 10001);
  CHECK(first.bytes().back() == std::byte{'z'});
  first.check_unchanged();
  first.release(first.bytes());
  first.release(first.bytes().subspan(5, 7));
  CHECK(first.bytes()[9999] == std::byte{'a'});
  std::filesystem::resize_file(path, 9000);
  CHECK(contains(message([&] { first.check_unchanged(); }), "expected still 10001 bytes, got 9000 bytes"));
}

TEST_CASE("a source notices a file that is cut while open, before it reads") {
  const Folder folder;
  const auto path = container_files::write(folder / "a.gguf", container_files::small_gguf().bytes);
  const io::TensorSource source(path);
  float number = 0;
  source.find("c")->read_floats(15, 1, &number);
  CHECK(number == 2.0f);
  std::filesystem::resize_file(path, 100);
  CHECK(contains(message([&] { source.find("c")->read_floats(15, 1, &number); }), "it changed while open"));
}

TEST_CASE("a tensor source reads both containers alike, in every storage type, and survives a move") {
  const Folder folder;
  container_files::write(folder / "a.gguf", container_files::small_gguf().bytes);
  io::TensorSource opened(folder / "a.gguf");
  const io::TensorSource source(std::move(opened));
  REQUIRE(source.gguf() != nullptr);
  CHECK(source.gguf()->get<std::string>("general.architecture") == "llama");
  REQUIRE(source.tensors().size() == 3);
  const io::SourceTensor& a = *source.find("a");
  CHECK(std::vector<std::uint64_t>(a.shape().begin(), a.shape().end()) == std::vector<std::uint64_t>{2, 8});
  typeformer::bf16 second_row[8];
  a.read(8, 8, second_row);
  CHECK(typeformer::to_float(second_row[7]) == 15.0f);
  std::vector<typeformer::f16> b(512);
  source.find("b")->read(0, 512, b.data());
  CHECK(typeformer::to_float(b[511]) == 15.0f);
  CHECK(typeformer::to_float(b[31]) == 0.0f);
  source.find("b")->release();
  CHECK(source.find("d") == nullptr);

  const io::TensorSource other(golden("quantized.safetensors"));
  CHECK(other.gguf() == nullptr);
  CHECK(other.find("Q4_1")->type_name() == "F32");
  std::vector<typeformer::bf16> rounded(192);
  std::vector<float> exact(192);
  other.find("F32")->read(0, 192, rounded.data());
  other.find("F32")->read_floats(0, 192, exact.data());
  for (std::size_t i = 0; i < 192; ++i) CHECK(rounded[i] == typeformer::from_float<typeformer::bf16>(exact[i]));

  CHECK(contains(message([&] { io::TensorSource(folder / "none"); }), "nothing of that name"));
  container_files::write(folder / "model.bin", "x");
  CHECK(contains(message([&] { io::TensorSource(folder / "model.bin"); }), "a .safetensors file or a .gguf file"));
  container_files::Gguf part;
  part.header(0, 1);
  part.entry("split.count", 2, container_files::raw(std::uint16_t{3}));
  container_files::write(folder / "part.gguf", part.bytes);
  CHECK(contains(message([&] { io::TensorSource(folder / "part.gguf"); }), "one of 3 parts"));
}

TEST_CASE("written safetensors: exact bytes, readable again, complete or not at all") {
  const Folder folder;
  const std::vector<float> numbers{1.0f, -2.0f};
  const std::vector<std::uint16_t> halves{0x3f80};
  const io::TensorToWrite tensors[] = {{"x\n", "F32", {1, 2}, std::as_bytes(std::span(numbers))},
                                       {"y", "BF16", {}, std::as_bytes(std::span(halves))},
                                       {"z", "I64", {0}, {}}};
  const auto path = folder / "out.safetensors";
  container_files::write(path, "old");
  io::write_safetensors(path, tensors, {{"format", "pt"}});
  std::string header = R"({"__metadata__":{"format":"pt"},"x\n":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]},)"
                       R"("y":{"dtype":"BF16","shape":[],"data_offsets":[8,10]},)"
                       R"("z":{"dtype":"I64","shape":[0],"data_offsets":[10,10]}})";
  header.append((8 - header.size() % 8) % 8, ' ');
  CHECK(container_files::read(path) ==
        container_files::safetensors(header, std::string("\0\0\x80\x3f\0\0\0\xc0\x80\x3f", 10)));
  const io::SafetensorsFile back(path);
  CHECK(floats(*back.find("x\n")) == numbers);
  CHECK(floats(*back.find("y")) == std::vector<float>{1.0f});
  CHECK(back.metadata()[0].second == "pt");

  const auto refused = [&](const io::TensorToWrite& tensor, std::string_view part) {
    CHECK(contains(message([&] { io::write_safetensors(path, std::span(&tensor, 1)); }), part));
  };
  refused({"x", "F32", {3}, std::as_bytes(std::span(numbers))}, "expected 12 for its shape and dtype, got 8");
  refused({"x", "F31", {2}, std::as_bytes(std::span(numbers))}, "'F31'");
  refused({"x", "F32", {std::uint64_t{1} << 62, 4}, {}}, "within 64 bits");
  refused({"x", "F4", {3}, std::as_bytes(std::span(halves))}, "whole bytes");
  refused({"\xff", "F32", {2}, std::as_bytes(std::span(numbers))}, "expected UTF-8");
  refused({"__metadata__", "F32", {2}, std::as_bytes(std::span(numbers))}, "reserves");
  const io::TensorToWrite twice[] = {tensors[1], tensors[1]};
  CHECK(contains(message([&] { io::write_safetensors(path, twice); }), "'y': expected one tensor of that name"));
  CHECK(contains(message([&] { io::write_safetensors(folder / "no" / "out.safetensors", tensors); }),
                 "write_safetensors"));
  CHECK(contains(message([&] { io::write_safetensors("/dev/null", tensors); }), "a regular file or none yet"));
  CHECK(contains(message([&] { io::write_safetensors(folder.path(), tensors); }), "a regular file or none yet"));
  CHECK(container_files::read(path).substr(8, header.size()) == header);
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), std::filesystem::directory_iterator{}) == 1);
}

TEST_CASE("a file over 4 GiB: eight known bytes at its end") {
  const Folder folder;
  constexpr std::uint64_t gap = std::uint64_t{5} << 30;
  const std::string header = R"({"gap":{"dtype":"U8","shape":[5368709120],"data_offsets":[0,5368709120]},)"
                             R"("end":{"dtype":"F32","shape":[2],"data_offsets":[5368709120,5368709128]}})";
  const auto path = container_files::write(folder / "large.safetensors", container_files::safetensors(header));
  std::filesystem::resize_file(path, 8 + header.size() + gap);  // a hole
  {
    std::ofstream file(path, std::ios::binary | std::ios::app);
    file << container_files::raw(0.5f) << container_files::raw(3.0f);
  }
  const io::SafetensorsFile file(path);
  CHECK(file.find("gap")->elements() == gap);
  CHECK(floats(*file.find("end")) == std::vector<float>{0.5f, 3.0f});
}

TEST_CASE("the real SmolLM2 file: counts, types and values known from gguf-py") {
  const char* const path = std::getenv("TYPEFORMER_SMOLLM2");
  if (path == nullptr) {
    MESSAGE("skipped: TYPEFORMER_SMOLLM2 names no file");
    return;
  }
  const io::GgufFile file(path);
  CHECK(file.tensors().size() == 272);
  CHECK(file.metadata().size() == 33);
  std::size_t quantized = 0, plain = 0;
  std::uint64_t elements = 0;
  for (const io::StoredTensor& tensor : file.tensors()) {
    quantized += tensor.format->name == "Q4_1";
    plain += tensor.format->name == "F32";
    elements += tensor.elements();
  }
  CHECK(quantized == 210);
  CHECK(plain == 61);
  CHECK(elements == 134515008);
  CHECK(file.find_tensor("token_embd.weight")->format->name == "Q8_0");
  CHECK(file.find_tensor("blk.0.attn_k.weight")->shape == std::vector<std::uint64_t>{192, 576});
  CHECK(file.get<int>("llama.block_count") == 30);
  CHECK(file.get<float>("llama.rope.freq_base") == 100000.0f);
  CHECK_FALSE(file.get<bool>("tokenizer.ggml.add_bos_token"));
  const auto tokens = file.get<std::vector<std::string_view>>("tokenizer.ggml.tokens");
  REQUIRE(tokens.size() == 49152);
  CHECK(tokens[1] == "<|im_start|>");
  CHECK(file.get<std::vector<int>>("tokenizer.ggml.token_type").size() == 49152);
  const auto number = [&file](std::string_view name, std::uint64_t row, std::uint64_t column) {
    const io::StoredTensor& tensor = *file.find_tensor(name);
    float value = 0;
    io::read_floats(tensor, row * tensor.shape.back() + column, 1, &value);
    return value;
  };
  CHECK(number("token_embd.weight", 49151, 575) == -0x1.55ap-5f);
  CHECK(number("token_embd.weight", 1, 0) == -0x1.86p-6f);
  CHECK(number("blk.29.ffn_down.weight", 575, 1535) == 0x1.dp-5f);
  CHECK(number("blk.0.attn_q.weight", 3, 33) == -0x1.626p-3f);
  CHECK(number("output_norm.weight", 0, 100) == 0x1.0cp+1f);
}
