// test: sanitize
// Tensors that do not fit the type, files that are cut or are no files: an Error that names what is wrong.
#include <sys/stat.h>

#include "io/load_refusals.hpp"
#include "model/tiny_models.hpp"

namespace {

using namespace load_files;

/// Writes a folder, then replaces its tensors and loads.
template <class M>
std::string with_tensors(const Checkpoint& original, const Tensors& tensors) {
  const Folder folder;
  original.write_config(folder);
  container_files::write(folder / "model.safetensors", safetensors(tensors));
  return outcome<M>(folder.path(), original);
}

Numbers transposed(const Numbers& from) {
  Numbers to({from.columns(), from.rows()});
  for (std::size_t r = 0; r < from.rows(); ++r)
    for (std::size_t c = 0; c < from.columns(); ++c) to(c, r) = from(r, c);
  return to;
}

/// Every tensor missing, of other shapes, and under a name of no parameter; shapes name both.
template <class M>
void check_tensors(const std::string& name) {
  const Checkpoint original(name);
  for (const auto& entry : original.tensors) {
    const std::string& tensor = entry.first;
    const Numbers& numbers = entry.second;
    CAPTURE(tensor);
    Tensors changed = original.tensors;
    changed.erase(tensor);
    // An own head that is missing: the config of transformers 5 then means a tied T5.
    const std::vector<std::string> words{"'" + tensor + "'", tensor == "lm_head.weight" ? "tied" : "'" + tensor + "'"};
    CHECK(names_one_of(with_tensors<M>(original, changed), words));
    changed[tensor + "2"] = numbers;
    CHECK(names_one_of(with_tensors<M>(original, changed), words));
    const auto shaped = [&](std::vector<std::size_t> shape) {
      changed = original.tensors;
      changed[tensor] = Numbers(shape);
      return with_tensors<M>(original, changed);
    };
    const std::size_t rows = numbers.rows(), columns = numbers.columns();
    std::vector<std::vector<std::size_t>> shapes{{rows + 1, columns}, {rows * columns, 1, 1}, {}, {0}};
    if (columns > 1) shapes.insert(shapes.end(), {{rows, columns - 1}, {rows * columns}, {rows, columns, 1}});
    if (rows != columns && columns > 1) shapes.push_back({columns, rows});
    for (const auto& shape : shapes) {
      const std::string text = shaped(shape);
      std::string got = "[";
      for (const std::size_t extent : shape) got += (got.size() > 1 ? ", " : "") + std::to_string(extent);
      CHECK(names_one_of(text, {"'" + tensor + "': expected [" + std::to_string(rows)}));
      CHECK(names_one_of(text, {"got " + got + "]"}));
    }
    if (columns > 1 && rows != columns) {
      changed[tensor] = transposed(numbers);
      CHECK(names_one_of(with_tensors<M>(original, changed), {"'" + tensor + "'"}));
    }
  }
  Tensors more = original.tensors;
  more["one.too.many"] = Numbers({2});
  CHECK(names_one_of(with_tensors<M>(original, more), {"'one.too.many'"}));
}

struct Small {
  Checkpoint original{"llama_tied"};
  Folder folder;
  Small() { original.write(folder); }
  std::string load(const LoadOptions& options = {}) const {
    return outcome<tiny::LlamaTied>(folder.path(), original, options);
  }
  std::string config(std::string_view bytes) const {
    container_files::write(folder / "config.json", bytes);
    return load();
  }
};

}  // namespace

TEST_CASE("llama: every tensor missing, renamed, of another shape") { check_tensors<tiny::Llama>("llama"); }
TEST_CASE("llama_tied") { check_tensors<tiny::LlamaTied>("llama_tied"); }
TEST_CASE("gemma3") { check_tensors<tiny::Gemma3>("gemma3"); }
TEST_CASE("t5") { check_tensors<tiny::T5>("t5"); }
TEST_CASE("t5_gated") { check_tensors<tiny::T5Gated>("t5_gated"); }

TEST_CASE("types of numbers that cannot be read as float") {
  const Small s;
  const std::string bytes = safetensors(s.original.tensors);
  for (const std::string dtype : {"I32", "U32", "F99", "I64"}) {
    std::string changed = bytes;
    const auto at = changed.find("\"F32\"");
    changed.replace(at, 5, "\"" + dtype + "\"");
    container_files::write(s.folder / "model.safetensors", changed);
    const std::string& first = s.original.tensors.begin()->first;
    CHECK(names_one_of(s.load(), {dtype, "'" + first + "'"}));  // I64: the bytes do not fit the shape
  }
  // twice the bytes, so that the container itself is right
  Json header;
  std::string data;
  for (const auto& [name, tensor] : s.original.tensors) {
    const std::string wide = encode(tensor, Format::f32) + std::string(4 * tensor.size(), '\0');
    header[name] = {
        {"dtype", "I64"}, {"shape", tensor.shape}, {"data_offsets", {data.size(), data.size() + wide.size()}}};
    data += wide;
  }
  container_files::write(s.folder / "model.safetensors", container_files::safetensors(header.dump(), data));
  CHECK(names_one_of(s.load(), {"expected a type that can be read, got I64"}));
}

TEST_CASE("truncated at every length that cuts a part off") {
  const Small s;
  const std::string bytes = container_files::read(s.folder / "model.safetensors");
  for (std::size_t size = 0; size < bytes.size(); size += size < 64 ? 1 : 997) {
    container_files::write(s.folder / "model.safetensors", bytes.substr(0, size));
    CHECK(names_one_of(s.load(), {"model.safetensors"}));
  }
  container_files::write(s.folder / "model.safetensors", bytes + "x");
  CHECK(names_one_of(s.load(), {"model.safetensors"}));
}

TEST_CASE("config.json that is none") {
  const Small s;
  for (const std::string text :
       {"", " ", "{", "null", "[]", "3", "\"text\"", "{}", "{\"model_type\": 3}", "{\"model_type\": []}",
        "{\"model_type\": null}", "\xff\xfe{}", "{\"model_type\": \"llama\"} x", "{'a': 1}"})
    CHECK_MESSAGE(names_one_of(s.config(text), {"config.json"}), text);
  for (const std::string model : {"gpt2", "gemma3", "mistral", "LLAMA", ""})
    CHECK(names_one_of(s.config("{\"model_type\": \"" + model + "\"}"), {"config.json: 'model_type': expected llama"}));
  const std::string open(100'000, '['), objects = [] {
    std::string text;
    for (int i = 0; i < 100'000; ++i) text += "{\"a\":";
    return text;
  }();
  CHECK(names_one_of(s.config(open), {"config.json"}));
  CHECK(names_one_of(s.config(open + std::string(100'000, ']')), {"config.json"}));
  CHECK(names_one_of(s.config(objects), {"config.json"}));
  CHECK(names_one_of(s.config("{\"model_type\":\"llama\",\"x\":" + open + std::string(100'000, ']') + "}"),
                     {"config.json"}));
  CHECK(names_one_of(s.config("{\"model_type\":\"llama\",\"vocab_size\":1e999}"), {"config.json"}));
  CHECK(names_one_of(s.config("{\"model_type\":\"llama\",\"vocab_size\":1\0}"), {"config.json"}));
  const std::string name(1000, 'k');
  Json config = s.original.config;
  config[name + "\n\x1b"] = std::string(100'000, 'v');
  const std::string text = s.config(config.dump());
  CHECK(names_one_of(text, {"kkkk"}));
  CHECK(text.size() < 1000);
  CHECK(text.find_first_of("\n\x1b") == std::string::npos);
}

TEST_CASE("config.json that is no regular file, or not there") {
  const Small s;
  const auto path = s.folder / "config.json";
  std::filesystem::remove(path);
  CHECK(names_one_of(s.load(), {"config.json"}));
  std::filesystem::create_directory(path);
  CHECK(names_one_of(s.load(), {"a directory"}));
  std::filesystem::remove(path);
  REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
  CHECK(names_one_of(s.load(), {"a FIFO"}));  // and does not wait for a writer
  std::filesystem::remove(path);
  std::filesystem::create_symlink("config.json", path);
  CHECK(names_one_of(s.load(), {"config.json"}));
}

TEST_CASE("paths that lead to no checkpoint") {
  const Small s;
  CHECK(names_one_of(outcome<tiny::LlamaTied>(s.folder / "nothing", s.original), {"nothing"}));
  CHECK(names_one_of(outcome<tiny::LlamaTied>(s.folder / "config.json", s.original), {"config.json"}));
  const Folder empty;
  CHECK(names_one_of(outcome<tiny::LlamaTied>(empty.path(), s.original), {empty.path().native()}));
  container_files::write(empty / "model.safetensors", container_files::read(s.folder / "model.safetensors"));
  CHECK(names_one_of(outcome<tiny::LlamaTied>(empty.path(), s.original), {"config.json"}));
}

TEST_CASE("the wrong type of model") {
  const std::string folder = harness::golden_folder("t5");
  CHECK(names_one_of(outcome<tiny::Llama>(folder, Checkpoint("llama")), {"load: "}));
  CHECK(names_one_of(outcome<tiny::T5>(harness::golden_folder("llama"), Checkpoint("t5")), {"load: "}));
  CHECK(names_one_of(outcome<tiny::T5Gated>(folder, Checkpoint("t5_gated")), {"load: encoder.vocab: expected 83"}));
}
