// test: sanitize
// Folders of safetensors files: one file or shards with an index, and every way in which the two can disagree.
#include <doctest/doctest.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "io/container_files.hpp"
#include "typeformer/io/safetensors.hpp"
#include "typeformer/io/tensor_source.hpp"

namespace {

namespace io = typeformer::io;
using container_files::contains;
using container_files::floats;
using container_files::Folder;
using container_files::message;

// Three tensors in two shards and their index.
struct Sharded {
  Folder folder;
  std::string map = R"("a":"one.safetensors","b":"one.safetensors","c":"two.safetensors")";

  Sharded() {
    const std::string tensor = R"({"dtype":"F32","shape":[1],"data_offsets":)";
    shard("one.safetensors", R"({"a":)" + tensor + R"([0,4]},"b":)" + tensor + R"([4,8]}})",
          container_files::raw(1.0f) + container_files::raw(2.0f));
    shard("two.safetensors", R"({"c":)" + tensor + R"([0,4]}})", container_files::raw(3.0f));
    index(R"({"metadata":{"total_size":12,"more":[{"x":null}]},"weight_map":{)" + map + "}}");
  }
  void shard(std::string_view name, const std::string& header, const std::string& data) const {
    container_files::write(folder / name, container_files::safetensors(header, data));
  }
  void index(std::string_view text) const { container_files::write(folder / "model.safetensors.index.json", text); }
  std::string open() const {
    return message([&] { io::SafetensorsFolder opened(folder.path()); });
  }
};

}  // namespace

TEST_CASE("folders: one file or shards, other files ignored") {
  Sharded files;
  container_files::write(files.folder / "unrelated.safetensors", "garbage");
  const io::SafetensorsFolder folder(files.folder.path());
  CHECK(folder.files().size() == 2);
  CHECK(floats(*folder.find("c")) == std::vector<float>{3.0f});
  CHECK(folder.find("d") == nullptr);
  const io::TensorSource source(files.folder.path());
  REQUIRE(source.tensors().size() == 3);
  float number = 0;
  source.find("b")->read_floats(0, 1, &number);
  CHECK(number == 2.0f);

  std::filesystem::copy_file(files.folder / "two.safetensors", files.folder / "model.safetensors");
  CHECK(io::SafetensorsFolder(files.folder.path()).files().size() == 1);  // the whole file wins, as in transformers
  const Folder empty;
  CHECK(contains(message([&] { io::SafetensorsFolder opened(empty.path()); }), "got neither"));
  CHECK(contains(message([&] { io::SafetensorsFolder opened(empty / "none"); }), "expected a folder"));
}

TEST_CASE("folders: index and shards must agree, and shards stay in the folder") {
  const Sharded files;
  const auto with_map = [&](const std::string& map) {
    files.index(R"({"weight_map":{)" + map + "}}");
    return files.open();
  };
  CHECK(with_map(files.map) == "no Error");
  CHECK(contains(with_map(files.map + R"(,"d":"two.safetensors")"), "tensor 'd': expected in shard 'two.safetensors'"));
  CHECK(contains(with_map(files.map + R"(,"d":"three.safetensors")"),
                 "shard 'three.safetensors': expected a file in the same folder, got none"));
  CHECK(contains(with_map(R"("a":"one.safetensors","c":"two.safetensors")"),
                 "tensor 'b': expected an entry with shard 'one.safetensors'"));
  CHECK(contains(with_map(R"("a":"one.safetensors","b":"two.safetensors","c":"two.safetensors")"), "tensor 'b'"));
  CHECK(contains(with_map(files.map + R"(,"a":"one.safetensors")"), "tensor 'a': expected one entry, got several"));
  for (const std::string name :
       {"../x.safetensors", "/etc/passwd", "..", ".", "", "sub/x.safetensors", "a\\\\b", "x\\u0000y"}) {
    CAPTURE(name);
    CHECK(contains(with_map(R"("a":")" + name + "\""), "expected the name of a file in the same folder"));
  }
  CHECK(contains(with_map(R"("a":".safetensors.d")"), "got none"));
  std::filesystem::create_directory(files.folder / "folder");
  CHECK(contains(with_map(R"("a":"folder")"), "got a directory"));
  for (const std::string value : {"1", "-1", "1.5", "null", "true", "[]", "{}", R"(["x"])"}) {
    CAPTURE(value);
    CHECK(contains(with_map("\"a\":" + value), "weight_map 'a': expected a file name"));
    files.index("{\"weight_map\":" + value + "}");
    if (value != "{}") CHECK(contains(files.open(), "weight_map: expected an object"));
  }
  for (const std::string text : {"", "[]", "3", "\"x\"", "{", "{\"weight_map\":{}", "{\"weight_map\":{}}{}", "\xff"}) {
    CAPTURE(text);
    files.index(text);
    CHECK(contains(files.open(), "index.json"));
  }
  files.index("{}");
  CHECK(contains(files.open(), "weight_map: expected an object, got nothing"));
  files.index(R"({"weight_map":{},"weight_map":{}})");
  CHECK(contains(files.open(), "weight_map: expected one, got several"));
  files.index("{\"metadata\":" + std::string(100000, '[') + std::string(100000, ']') + ",\"weight_map\":{" + files.map +
              "}}");
  CHECK(files.open() == "no Error");
  files.index(std::string("{\"weight_map\":{}}\0{", 19));
  CHECK(contains(files.open(), "a zero byte"));
}
