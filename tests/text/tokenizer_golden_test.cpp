// test: sanitize
// Ids and decoded texts of the HF tokenizers library (golden/text.py, text/golden/make_variants.py): a tokenizer of
// each common form, one setting changed at a time, and the real SmolLM2 from its GGUF. Streams must give the same
// texts.
#include <doctest/doctest.h>

#include <cctype>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "text/files.hpp"
#include "typeformer/text/stream_decoder.hpp"
#include "typeformer/text/tokenizer.hpp"

namespace {

using text_files::json;
using typeformer::Tokenizer;

std::string streamed(const Tokenizer& tokenizer, const std::vector<std::int32_t>& ids) {
  typeformer::StreamDecoder stream(tokenizer);
  std::string text;
  for (const std::int32_t id : ids) {
    const std::string piece = stream.next(id);
    if (!typeformer::text::is_valid_utf8(piece)) text += "[cut]";
    text += piece;
  }
  return text + stream.flush();
}

void check_lines(const Tokenizer& tokenizer, const std::vector<json>& cases) {
  for (const json& line : cases) {
    const auto text = line["text"].get<std::string>();
    const auto ids = line["ids"].get<std::vector<std::int32_t>>();
    const auto decoded = line.contains("decoded") ? line["decoded"].get<std::string>() : text;
    CAPTURE(line["text"].dump(-1, ' ', true));
    CHECK(tokenizer.encode(text) == ids);
    if (line.contains("plain")) {
      CHECK(tokenizer.encode(text, {.special_tokens_in_text = false}) ==
            line["plain"].get<std::vector<std::int32_t>>());
    }
    CHECK(tokenizer.decode(ids) == decoded);
    CHECK(streamed(tokenizer, ids) == decoded);
  }
}

}  // namespace

TEST_CASE("tokenizers of the usual forms agree with HF on every string") {
  for (const char* name : {"tiny", "tiny_split"}) {
    CAPTURE(name);
    const std::filesystem::path folder = text_files::golden() / "text" / name;
    const std::vector<json> cases = text_files::lines(folder / "strings.jsonl");
    REQUIRE(cases.size() >= 300);
    check_lines(Tokenizer(folder / "tokenizer.json"), cases);
  }
}

TEST_CASE("each setting of tokenizer.json does what it does in HF") {
  const std::vector<json> variants = text_files::lines(text_files::own_golden() / "variants.jsonl");
  REQUIRE(variants.size() >= 25);
  const text_files::Folder folder;
  for (const json& variant : variants) {
    CAPTURE(variant["name"].get<std::string>());
    const Tokenizer tokenizer(folder.write("tokenizer.json", variant["tokenizer"].dump()));
    check_lines(tokenizer, variant["cases"]);
  }
}

TEST_CASE("one long text gives the ids of HF for its words, and the same from many threads") {
  const std::filesystem::path folder = text_files::golden() / "text" / "tiny";
  const Tokenizer tokenizer(folder / "tokenizer.json");
  std::string text;  // long enough for the memory of words; lines end pieces, so ids are those of the parts
  std::vector<std::int32_t> ids;
  for (const json& line : text_files::lines(folder / "strings.jsonl")) {
    const auto part = line["text"].get<std::string>();
    if (part.empty() || !std::isalpha(static_cast<unsigned char>(part.front())) ||
        !std::isalpha(static_cast<unsigned char>(part.back()))) {
      continue;
    }
    for (int times = 0; times < 40; ++times) {
      const auto part_ids = line["ids"].get<std::vector<std::int32_t>>();
      const std::string between = "\t";  // before a letter, a white space that is no blank is a piece of its own
      text += part + between;
      ids.insert(ids.end(), part_ids.begin(), part_ids.end());
      ids.push_back(*tokenizer.id_of("\u0109"));
    }
  }
  REQUIRE(text.size() > 8192);
  CHECK(tokenizer.encode(text) == ids);
  std::vector<std::thread> threads;
  std::vector<int> wrong(4, 0);
  for (std::size_t i = 0; i < wrong.size(); ++i) {
    threads.emplace_back([&, i] {
      for (int round = 0; round < 5; ++round) wrong[i] += tokenizer.encode(text) == ids ? 0 : 1;
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == std::vector<int>(4, 0));
}

TEST_CASE("SmolLM2 from its GGUF agrees with the published tokenizer on 2000 strings") {
  const char* path = std::getenv("TYPEFORMER_SMOLLM2");
  if (path == nullptr) {
    MESSAGE("skipped: TYPEFORMER_SMOLLM2 does not name the model's GGUF");
    return;
  }
  const Tokenizer tokenizer{std::filesystem::path(path)};
  CHECK(tokenizer.vocab_size() == 49152);
  CHECK(tokenizer.bos_id() == 1);
  CHECK(tokenizer.eos_id() == 2);
  CHECK(tokenizer.eos_token() == "<|im_end|>");
  CHECK(std::vector<std::int32_t>(tokenizer.stop_ids().begin(), tokenizer.stop_ids().end()) ==
        std::vector<std::int32_t>{2});
  CHECK(tokenizer.encode("").empty());  // the file says: no BOS
  CHECK(tokenizer.encode("", {.add_bos = true}) == std::vector<std::int32_t>{1});
  const std::vector<json> cases = text_files::lines(text_files::golden() / "text" / "smollm2_strings.jsonl");
  REQUIRE(cases.size() >= 2000);
  check_lines(tokenizer, cases);
  const json smollm2 = text_files::document(text_files::golden() / "smollm2.json");
  CHECK(tokenizer.encode(smollm2["chat"]["rendered"].get<std::string>(), {.add_bos = false}) ==
        smollm2["chat"]["prompt_ids"].get<std::vector<std::int32_t>>());
}
