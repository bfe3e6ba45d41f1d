/// What the tests of text share: golden files, temporary files, and the message of an Error.
#pragma once
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "typeformer/core/error.hpp"

namespace text_files {

using nlohmann::json;

/// tests/golden, or what TYPEFORMER_GOLDEN names.
inline std::filesystem::path golden() {
  const char* elsewhere = std::getenv("TYPEFORMER_GOLDEN");
  return elsewhere != nullptr ? std::filesystem::path(elsewhere)
                              : std::filesystem::path(__FILE__).parent_path().parent_path() / "golden";
}
/// The folder of golden values that belong to these tests alone.
inline std::filesystem::path own_golden() { return std::filesystem::path(__FILE__).parent_path() / "golden"; }

/// One JSON document a line.
template <class Json = json>
std::vector<Json> lines(const std::filesystem::path& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error("cannot read " + path.string());
  std::vector<Json> out;
  for (std::string line; std::getline(file, line);) out.push_back(Json::parse(line));
  return out;
}

inline json document(const std::filesystem::path& path) {
  std::ifstream file(path);
  return json::parse(file);
}

/// A folder of its own that disappears with the object.
class Folder {
 public:
  Folder() {
    static int count = 0;
    path_ = std::filesystem::temp_directory_path() /
            ("typeformer_text_" + std::to_string(::getpid()) + "_" + std::to_string(count++));
    std::filesystem::create_directories(path_);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() { std::filesystem::remove_all(path_); }

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path write(std::string_view name, std::string_view content) const {
    std::ofstream(path_ / name, std::ios::binary) << content;
    return path_ / name;
  }

 private:
  std::filesystem::path path_;
};

/// The message of the Error that the call throws; "" when it throws none.
template <class Call>
std::string error_of(Call&& call) {
  try {
    call();
  } catch (const typeformer::Error& error) {
    return error.what();
  }
  return "";
}

/// The smallest byte-level tokenizer.json: 256 symbols, " t", "he", " the", one special token.
inline json small_tokenizer() {
  json vocab = json::object(), merges = json::array({"\u0120 t", "h e", "\u0120t he"});
  const auto add = [&](const std::string& token) { vocab.emplace(token, vocab.size()); };
  char32_t next = 0x100;
  for (char32_t byte = 0; byte < 256; ++byte) {
    const bool itself = (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
    const char32_t code = itself ? byte : next++;
    std::string character;
    if (code < 0x80) {
      character += static_cast<char>(code);
    } else {
      character += static_cast<char>(0xc0 | (code >> 6));
      character += static_cast<char>(0x80 | (code & 0x3f));
    }
    add(character);
  }
  for (const char* token : {"\u0120t", "he", "\u0120the"}) add(token);
  return {{"version", "1.0"},
          {"truncation", nullptr},
          {"padding", nullptr},
          {"added_tokens", json::array({{{"id", 259},
                                         {"content", "<s>"},
                                         {"single_word", false},
                                         {"lstrip", false},
                                         {"rstrip", false},
                                         {"normalized", false},
                                         {"special", true}}})},
          {"normalizer", nullptr},
          {"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", true}}},
          {"post_processor", nullptr},
          {"decoder", {{"type", "ByteLevel"}}},
          {"model", {{"type", "BPE"}, {"vocab", vocab}, {"merges", merges}}}};
}

}  // namespace text_files
