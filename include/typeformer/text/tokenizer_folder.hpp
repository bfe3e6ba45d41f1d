/// Reads the tokenizer of an HF folder: tokenizer.json and the files beside it.
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <variant>

#include "typeformer/core/annotate.hpp"
#include "typeformer/core/error.hpp"
#include "typeformer/io/json_document.hpp"
#include "typeformer/io/mapped_file.hpp"
#include "typeformer/io/quote_name.hpp"
#include "typeformer/text/json_field.hpp"
#include "typeformer/text/tokenizer_json.hpp"
#include "typeformer/text/tokenizer_parts.hpp"

namespace typeformer::inline TYPEFORMER_ABI::text {

/// The contents of a regular file.
inline std::string file_text(const std::filesystem::path& path) {
  const io::MappedFile file(path);
  file.check_unchanged();
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

/// A tokenizer.json alone. Beginning and end of text are what its post-processor says; there are no stop ids.
inline void read_tokenizer_json(const std::filesystem::path& path, TokenizerParts& parts) {
  const std::string where = io::quote_name(path.native()) + ": ";
  const nlohmann::json document = io::parse_json(file_text(path), "Tokenizer", where);
  TokenizerJsonReader(parts).read(JsonField(document, where));
}

/// Applies the files beside a tokenizer.json as transformers 5 does.
class TokenizerFolderReader {
 public:
  TokenizerFolderReader(const std::filesystem::path& folder, TokenizerParts& parts) : folder_(folder), parts_(parts) {}

  void read() {
    const std::filesystem::path main = folder_ / "tokenizer.json";
    if (!exists(main)) throw Error("Tokenizer", io::quote_name(folder_.native()), "a tokenizer.json", found_instead());
    read_tokenizer_json(main, parts_);
    if (const auto map = document("special_tokens_map.json"))
      read_special_tokens(field(*map, "special_tokens_map.json"));
    if (const auto config = document("tokenizer_config.json")) read_config(field(*config, "tokenizer_config.json"));
    if (const auto path = folder_ / "chat_template.jinja"; exists(path)) parts_.chat_template = file_text(path);
    if (!read_stop_ids("generation_config.json")) read_stop_ids("config.json");
    if (parts_.eos) parts_.add_stop(*parts_.eos);
  }

 private:
  static bool exists(const std::filesystem::path& path) {
    std::error_code unreadable;
    return std::filesystem::exists(path, unreadable);
  }
  std::string found_instead() const {
    for (const char* other : {"tokenizer.model", "spiece.model", "vocab.txt", "vocab.json"}) {
      if (exists(folder_ / other)) return "only a " + std::string(other) + ", which is not supported";
    }
    return "none";
  }
  std::optional<nlohmann::json> document(const char* name) const {
    if (!exists(folder_ / name)) return std::nullopt;
    return io::parse_json(file_text(folder_ / name), "Tokenizer", io::quote_name((folder_ / name).native()));
  }
  JsonField field(const nlohmann::json& json, const char* name) const {
    return {json, io::quote_name((folder_ / name).native()) + ": "};
  }

  void read_config(const JsonField& config) {
    if (const auto table = config.find("added_tokens_decoder")) read_added_tokens(*table);
    read_special_tokens(config);
    read_surroundings(config);
    if (config.flag("split_special_tokens", false)) config.at("split_special_tokens").refuse("false");
    if (const auto prefix = config.find("add_prefix_space")) set_prefix_space(prefix->boolean());
    if (const auto chat = config.find("chat_template")) read_chat_template(*chat);
  }

  // {"0": {"content": "<s>", ...}}: the flags here win over those of tokenizer.json.
  void read_added_tokens(const JsonField& table) {
    if (!table.value().is_object()) table.refuse("an object");
    for (const auto& [id, unused] : table.value().items()) {
      const JsonField entry = table.at(id);
      AddedToken token = token_of(entry);
      if (const auto known = parts_.vocabulary.id_of(token.content); known && std::to_string(*known) != id) {
        entry.refuse("id " + std::to_string(*known) + " as in tokenizer.json", id);
      }
      parts_.add_token(std::move(token));
    }
  }

  // "<s>" or {"content": "<s>", "lstrip": false, ...}
  static AddedToken token_of(const JsonField& value) {
    if (value.value().is_string()) return {.content = value.string(), .special = true};
    value.allow_only({"__type", "content", "single_word", "lstrip", "rstrip", "normalized", "special", "id"});
    const bool special = value.flag("special", false);
    return {value.at("content").string(),
            -1,
            special,
            value.flag("single_word", false),
            value.flag("lstrip", false),
            value.flag("rstrip", false),
            value.flag("normalized", !special)};
  }

  void read_special_tokens(const JsonField& config) {
    for (const char* name :
         {"bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"}) {
      if (const auto value = config.find(name)) {
        const std::int32_t id = special_id(*value);
        if (name == std::string_view("bos_token")) parts_.bos = id;
        if (name == std::string_view("eos_token")) parts_.eos = id;
      }
    }
    if (const auto more = config.find("additional_special_tokens")) {
      for (const JsonField& value : more->elements()) special_id(value);
    }
  }

  // A named special token is found in texts even where tokenizer.json does not list it.
  std::int32_t special_id(const JsonField& value) {
    AddedToken token = token_of(value);
    token.special = true;
    const std::string content = token.content;
    if (!parts_.is_added(content)) parts_.add_token(std::move(token));
    return *parts_.vocabulary.id_of(content);
  }

  // add_bos_token and add_eos_token, where given, replace the post-processor's template.
  void read_surroundings(const JsonField& config) {
    const auto bos = config.find("add_bos_token"), eos = config.find("add_eos_token");
    if (!bos && !eos) return;
    parts_.prefix.clear();
    parts_.suffix.clear();
    if (bos && bos->boolean() && parts_.bos) parts_.prefix.push_back(*parts_.bos);
    if (eos && eos->boolean() && parts_.eos) parts_.suffix.push_back(*parts_.eos);
  }

  // Concerns only a pre-tokenizer that is ByteLevel and nothing else.
  void set_prefix_space(bool wanted) {
    if (!parts_.byte_level_alone) return;
    PreTokenizer changed;
    if (wanted) changed.emplace_back(PrefixSpace{});
    for (const auto& step : parts_.pre_tokenizer) {
      if (!std::holds_alternative<PrefixSpace>(step)) changed.push_back(step);
    }
    parts_.pre_tokenizer = std::move(changed);
  }

  // One template, or a list of named ones of which "default" is taken.
  void read_chat_template(const JsonField& chat) {
    if (chat.value().is_string()) {
      parts_.chat_template = chat.string();
      return;
    }
    for (const JsonField& entry : chat.elements()) {
      if (entry.at("name").string() == "default") parts_.chat_template = entry.at("template").string();
    }
  }

  // eos_token_id: an id or a list of ids.
  bool read_stop_ids(const char* name) {
    const auto json = document(name);
    if (!json) return false;
    const auto value = field(*json, name).find("eos_token_id");
    if (!value) return false;
    if (value->value().is_array()) {
      for (const JsonField& id : value->elements()) parts_.add_stop(id.id());
    } else {
      parts_.add_stop(value->id());
    }
    return true;
  }

  std::filesystem::path folder_;
  TokenizerParts& parts_;
};

}  // namespace typeformer
