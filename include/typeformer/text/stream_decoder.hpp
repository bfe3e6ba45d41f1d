/// Decoding while tokens arrive: only whole characters are given out.
#pragma once
#include <cstdint>
#include <string>
#include <utility>

#include "typeformer/core/annotate.hpp"
#include "typeformer/text/tokenizer.hpp"
#include "typeformer/text/utf8.hpp"

namespace typeformer::inline TYPEFORMER_ABI {

/// Turns a sequence of tokens into text piece by piece. The pieces one after the other, flush() last, are what
/// Tokenizer::decode makes of all ids at once, whatever the ids: a character that two tokens share is held back until
/// it is complete, and ill-formed bytes become the same U+FFFD. One object per sequence.
class StreamDecoder {
 public:
  /// Shares the tokenizer's data; the tokenizer itself need not live on.
  explicit StreamDecoder(Tokenizer tokenizer, DecodeOptions options = {})
      : tokenizer_(std::move(tokenizer)), options_(options) {}

  /// The characters that are certain now that this token has come; often one word, sometimes "".
  /// Throws Error for an id that is no token; what was held back stays.
  std::string next(std::int32_t id) {
    if (options_.skip_special_tokens && tokenizer_.is_special(id)) return {};
    held_back_ += tokenizer_.bytes_of(id);
    return take(false);
  }

  /// Ends the sequence: what was held back, as U+FFFD. The object is then as new.
  std::string flush() { return take(true); }

 private:
  std::string take(bool final) {
    std::string piece;
    held_back_.erase(0, text::append_valid_utf8(piece, held_back_, final));
    return piece;
  }
  Tokenizer tokenizer_;
  DecodeOptions options_;
  std::string held_back_;  // the beginning of a character, at most 3 bytes between calls
};

}  // namespace typeformer
