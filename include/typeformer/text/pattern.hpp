/// A compiled split pattern and the search for its matches.
#pragma once
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

// Names with the suffix _8 are used throughout, so a program may choose another default width for itself.
#ifndef PCRE2_CODE_UNIT_WIDTH
#define PCRE2_CODE_UNIT_WIDTH 8
#endif
#include <pcre2.h>

#include "typeformer/core/annotate.hpp"
#include "typeformer/core/error.hpp"
#include "typeformer/text/pattern_syntax.hpp"

namespace typeformer::inline TYPEFORMER_ABI::text {

/// A pattern, compiled once. Immutable: one object serves many threads.
class Pattern {
 public:
  /// source: Oniguruma syntax (see PatternTranslator). where: what errors name, e.g. `pre_tokenizer.pattern`.
  Pattern(std::string_view source, std::string_view where) : where_(where) {
    const std::string translated = PatternTranslator(source, where).translate();
    const std::unique_ptr<pcre2_compile_context_8, decltype(&pcre2_compile_context_free_8)> context(
        pcre2_compile_context_create_8(nullptr), &pcre2_compile_context_free_8);
    if (context != nullptr) pcre2_set_newline_8(context.get(), PCRE2_NEWLINE_LF);
    int code = 0;
    std::size_t offset = 0;
    code_ = {pcre2_compile_8(reinterpret_cast<PCRE2_SPTR8>(translated.data()), translated.size(),
                             PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE, &code, &offset, context.get()),
             &pcre2_code_free_8};
    if (code_ == nullptr)
      throw Error("Tokenizer", where_, "a valid split pattern", std::string(source) + " (" + message(code) + ")");
    jit_ = pcre2_jit_compile_8(code_.get(), PCRE2_JIT_COMPLETE) == 0;
  }

  const std::string& where() const { return where_; }

 private:
  friend class PatternSearch;
  static std::string message(int code) {
    PCRE2_UCHAR8 text[256] = {};
    pcre2_get_error_message_8(code, text, sizeof text);
    return reinterpret_cast<const char*>(text);
  }
  std::string where_;
  std::shared_ptr<pcre2_code_8> code_;
  bool jit_ = false;
};

/// Finds a pattern's matches from left to right. Holds the memory of a search: one object per thread.
class PatternSearch {
 public:
  /// `pattern` must outlive this object.
  explicit PatternSearch(const Pattern& pattern)
      : pattern_(&pattern), data_(pcre2_match_data_create_8(1, nullptr), &pcre2_match_data_free_8) {
    if (data_ == nullptr) throw Error("Tokenizer", pattern.where(), "memory for matching", "none");
  }

  /// The next match at or after `from` in `text` (valid UTF-8, `from` at a character): false when there is none.
  /// Throws Error when the pattern needs more than PCRE2's limits of steps or memory on this text.
  bool next(std::string_view text, std::size_t from, std::size_t& begin, std::size_t& end) const {
    const auto* subject = reinterpret_cast<PCRE2_SPTR8>(text.data() == nullptr ? "" : text.data());
    int result = PCRE2_ERROR_JIT_STACKLIMIT;
    if (pattern_->jit_) {
      result = pcre2_jit_match_8(pattern_->code_.get(), subject, text.size(), from, 0, data_.get(), nullptr);
    }
    if (result == PCRE2_ERROR_JIT_STACKLIMIT) {  // the interpreter keeps its backtracking points on the heap
      result = pcre2_match_8(pattern_->code_.get(), subject, text.size(), from, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT,
                             data_.get(), nullptr);
    }
    if (result == PCRE2_ERROR_NOMATCH) return false;
    if (result < 0)
      throw Error("Tokenizer", pattern_->where(), "a text that the pattern can be matched with",
                  Pattern::message(result));
    const std::size_t* bounds = pcre2_get_ovector_pointer_8(data_.get());
    begin = bounds[0];
    end = bounds[1];
    return true;
  }

 private:
  const Pattern* pattern_;
  std::unique_ptr<pcre2_match_data_8, decltype(&pcre2_match_data_free_8)> data_;
};

}  // namespace typeformer
