/// Reads tokenizer.json, the format of the HF tokenizers library. A field that is not understood is an Error.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "typeformer/core/annotate.hpp"
#include "typeformer/core/error.hpp"
#include "typeformer/text/json_field.hpp"
#include "typeformer/text/tokenizer_parts.hpp"

namespace typeformer::inline TYPEFORMER_ABI::text {

/// Fills the parts from the fields of one document. Format: github.com/huggingface/tokenizers, the serialisation of
/// each component.
class TokenizerJsonReader {
 public:
  explicit TokenizerJsonReader(TokenizerParts& parts) : parts_(parts) {}

  /// `truncation` and `padding` are known fields without effect here: they are settings of a batch that a file happens
  /// to carry, and callers of the reference implementation apply them only when asked.
  void read(const JsonField& root) {
    root.allow_only({"version", "truncation", "padding", "added_tokens", "normalizer", "pre_tokenizer",
                     "post_processor", "decoder", "model"});
    if (root.string_or("version", "1.0") != "1.0") root.at("version").refuse("'1.0'");
    if (const auto normalizer = root.find("normalizer")) read_normalizer(*normalizer);
    read_model(root.at("model"));
    if (const auto added = root.find("added_tokens"))
      for (const JsonField& token : added->elements()) read_added_token(token);
    read_pre_tokenizer(root.at("pre_tokenizer"));
    if (!byte_level_) root.at("pre_tokenizer").refuse("ByteLevel as the last step", "no ByteLevel");
    read_decoder(root.at("decoder"));
    if (const auto processor = root.find("post_processor")) read_post_processor(*processor);
  }

 private:
  void read_normalizer(const JsonField& normalizer, int depth = 0) {
    if (depth > deepest) normalizer.refuse("a Sequence of fewer levels", "more than " + std::to_string(deepest));
    const std::string& type = normalizer.at("type").string();
    if (type == "Sequence") {
      normalizer.allow_only({"type", "normalizers"});
      for (const JsonField& step : normalizer.at("normalizers").elements()) read_normalizer(step, depth + 1);
      return;
    }
    if (type != "NFC") normalizer.at("type").refuse("null, 'NFC' or a Sequence of these");
    normalizer.allow_only({"type"});
    parts_.normalization = Normalization::nfc;
  }

  void read_model(const JsonField& model) {
    const std::string type = model.string_or("type", "BPE");  // files of early versions leave it out
    if (type != "BPE") model.at("type").refuse("'BPE'");
    model.allow_only({"type", "dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix", "fuse_unk",
                      "byte_fallback", "ignore_merges", "vocab", "merges"});
    if (const auto dropout = model.find("dropout"); dropout && dropout->number() != 0) dropout->refuse("null");
    for (const std::string_view affix : {"continuing_subword_prefix", "end_of_word_suffix"}) {
      if (!model.string_or(affix, "").empty()) model.at(affix).refuse("null or ''");
    }
    if (model.flag("byte_fallback", false)) model.at("byte_fallback").refuse("false");
    read_vocabulary(model.at("vocab"));
    BytePairModel::Options options;
    if (const auto unknown = model.find("unk_token")) {
      const auto id = parts_.vocabulary.id_of(unknown->string());
      if (!id) unknown->refuse("a token of the vocabulary");
      options.unknown = *id;
    }
    options.fuse_unknown = model.flag("fuse_unk", false);
    if (model.flag("ignore_merges", false)) options.whole_words = words_by_bytes(parts_.vocabulary);
    MergeTable merges = read_merges(model.at("merges"));
    parts_.model =
        std::make_unique<BytePairModel>(byte_symbols(parts_.vocabulary), std::move(merges), std::move(options));
  }

  void read_vocabulary(const JsonField& vocabulary) {
    if (!vocabulary.value().is_object()) vocabulary.refuse("an object");
    std::int64_t size = 0;
    const auto id_of = [&](const auto& entry) {
      return JsonField(entry.value(), vocabulary.where() + " of " + io::quote_name(entry.key())).id();
    };
    for (const auto& entry : vocabulary.value().items()) size = std::max(size, std::int64_t{id_of(entry)} + 1);
    parts_.vocabulary.reserve(size, vocabulary.value().size());
    for (const auto& entry : vocabulary.value().items()) {
      parts_.vocabulary.add(id_of(entry), entry.key(), byte_level_bytes(entry.key()).value_or(entry.key()));
    }
  }

  MergeTable read_merges(const JsonField& list) const {
    if (!list.value().is_array()) list.refuse("an array");
    MergeTable merges(list.value().size());
    std::size_t rank = 0;
    for (const nlohmann::json& pair : list.value()) {
      if (pair.is_string()) {
        add_merge(merges, parts_.vocabulary, rank, pair.get_ref<const std::string&>());
      } else if (pair.is_array() && pair.size() == 2 && pair[0].is_string() && pair[1].is_string()) {
        add_merge(merges, parts_.vocabulary, rank, pair[0].get_ref<const std::string&>(),
                  pair[1].get_ref<const std::string&>());
      } else {
        JsonField(pair, list.where() + "[" + std::to_string(rank) + "]").refuse("'left right' or ['left', 'right']");
      }
      ++rank;
    }
    return merges;
  }

  void read_added_token(const JsonField& token) {
    token.allow_only({"id", "content", "single_word", "lstrip", "rstrip", "normalized", "special"});
    const bool special = token.flag("special", false);
    parts_.add_token({token.at("content").string(), token.at("id").id(), special, token.flag("single_word", false),
                      token.flag("lstrip", false), token.flag("rstrip", false), token.flag("normalized", !special)});
  }

  void read_pre_tokenizer(const JsonField& step, int depth = 0) {
    if (depth > deepest) step.refuse("a Sequence of fewer levels", "more than " + std::to_string(deepest));
    if (byte_level_) step.refuse("no step after ByteLevel", "one");
    const std::string& type = step.at("type").string();
    PreTokenizer& steps = parts_.pre_tokenizer;
    if (type == "Sequence") {
      step.allow_only({"type", "pretokenizers"});
      for (const JsonField& inner : step.at("pretokenizers").elements()) read_pre_tokenizer(inner, depth + 1);
    } else if (type == "ByteLevel") {
      step.allow_only({"type", "add_prefix_space", "trim_offsets", "use_regex"});  // offsets are not computed
      if (step.flag("add_prefix_space", true)) steps.emplace_back(PrefixSpace{});
      if (step.flag("use_regex", true)) steps.emplace_back(PatternSplit{Pattern(gpt2_pattern, step.where())});
      byte_level_ = true;
      parts_.byte_level_alone = depth == 0;
    } else if (type == "Digits") {
      step.allow_only({"type", "individual_digits"});
      steps.emplace_back(DigitsSplit{step.flag("individual_digits", false)});
    } else if (type == "Split") {
      step.allow_only({"type", "pattern", "behavior", "invert"});
      steps.emplace_back(PatternSplit{read_pattern(step.at("pattern")), read_behavior(step.at("behavior")),
                                      step.flag("invert", false)});
    } else {
      step.at("type").refuse("Sequence, ByteLevel, Digits or Split");
    }
  }

  static Pattern read_pattern(const JsonField& pattern) {
    pattern.allow_only({"Regex", "String"});
    if (const auto regex = pattern.find("Regex")) return Pattern(regex->string(), regex->where());
    const JsonField literal = pattern.at("String");
    if (literal.string().empty()) literal.refuse("a string that is not empty");
    std::string escaped;
    for (const char c : literal.string()) {
      const bool plain =
          static_cast<unsigned char>(c) >= 0x80 || PatternTranslator::is_letter(c) || PatternTranslator::is_digit(c);
      if (!plain) escaped += '\\';
      escaped += c;
    }
    return Pattern(escaped, literal.where());
  }

  static SplitBehavior read_behavior(const JsonField& behavior) {
    const std::string& name = behavior.string();
    if (name == "Removed") return SplitBehavior::removed;
    if (name == "Isolated") return SplitBehavior::isolated;
    if (name == "MergedWithPrevious") return SplitBehavior::merged_with_previous;
    if (name == "MergedWithNext") return SplitBehavior::merged_with_next;
    if (name == "Contiguous") return SplitBehavior::contiguous;
    behavior.refuse("Removed, Isolated, MergedWithPrevious, MergedWithNext or Contiguous");
  }

  static void read_decoder(const JsonField& decoder) {
    if (decoder.at("type").string() != "ByteLevel") decoder.at("type").refuse("'ByteLevel'");
    decoder.allow_only({"type", "add_prefix_space", "trim_offsets", "use_regex"});  // none concerns decoding
  }

  void read_post_processor(const JsonField& processor, int depth = 0) {
    if (depth > deepest) processor.refuse("a Sequence of fewer levels", "more than " + std::to_string(deepest));
    const std::string& type = processor.at("type").string();
    if (type == "Sequence") {
      processor.allow_only({"type", "processors"});
      for (const JsonField& inner : processor.at("processors").elements()) read_post_processor(inner, depth + 1);
    } else if (type == "ByteLevel") {
      processor.allow_only({"type", "add_prefix_space", "trim_offsets", "use_regex"});  // concerns offsets alone
    } else if (type == "TemplateProcessing") {
      processor.allow_only({"type", "single", "pair", "special_tokens"});
      read_template(processor);
    } else if (type == "RobertaProcessing" || type == "BertProcessing") {
      processor.allow_only({"type", "sep", "cls", "trim_offsets", "add_prefix_space"});
      surround({named_id(processor.at("cls"))}, {named_id(processor.at("sep"))});
    } else {
      processor.at("type").refuse("Sequence, ByteLevel, TemplateProcessing, RobertaProcessing or BertProcessing");
    }
  }

  // ["</s>", 2]
  static std::int32_t named_id(const JsonField& pair) {
    if (!pair.value().is_array() || pair.value().size() != 2) pair.refuse("[token, id]");
    return JsonField(pair.value()[1], pair.where() + "[1]").id();
  }

  void read_template(const JsonField& processor) {
    std::vector<std::int32_t> before, after;
    int sequences = 0;
    const JsonField single = processor.at("single");
    for (const JsonField& part : single.elements()) {
      part.allow_only({"Sequence", "SpecialToken"});
      if (const auto sequence = part.find("Sequence")) {
        if (sequence->at("id").string() != "A") sequence->at("id").refuse("'A'");
        ++sequences;
        continue;
      }
      const JsonField token = processor.at("special_tokens").at(part.at("SpecialToken").at("id").string());
      for (const JsonField& id : token.at("ids").elements()) (sequences == 0 ? before : after).push_back(id.id());
    }
    if (sequences != 1) single.refuse("the sequence A once", std::to_string(sequences) + " times");
    surround(before, after);
  }

  // A later processor of a Sequence goes around the earlier ones.
  void surround(const std::vector<std::int32_t>& before, const std::vector<std::int32_t>& after) {
    parts_.prefix.insert(parts_.prefix.begin(), before.begin(), before.end());
    parts_.suffix.insert(parts_.suffix.end(), after.begin(), after.end());
  }

  static constexpr int deepest = 8;  // Sequences may hold Sequences; a hostile file must not exhaust the stack
  TokenizerParts& parts_;
  bool byte_level_ = false;
};

}  // namespace typeformer
