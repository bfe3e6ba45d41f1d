/// Pre-tokenisation: a text is cut into the pieces within which tokens may form.
#pragma once
#include <algorithm>
#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "typeformer/core/annotate.hpp"
#include "typeformer/text/pattern.hpp"
#include "typeformer/text/unicode.hpp"
#include "typeformer/text/utf8.hpp"

namespace typeformer::inline TYPEFORMER_ABI::text {

/// GPT-2's split pattern, which ByteLevel uses. Radford et al. 2019, the published encoder.
inline constexpr std::string_view gpt2_pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

/// What becomes of a delimiter and of its neighbours: cut out; a piece of its own; the end of the piece before it; the
/// beginning of the piece after it; a piece together with adjacent delimiters.
enum class SplitBehavior { removed, isolated, merged_with_previous, merged_with_next, contiguous };

/// Delimiters are number characters (Nd, Nl, No): each a piece of its own, or contiguous.
struct DigitsSplit {
  bool individual = false;
};

/// Delimiters are the matches of a pattern, or, when inverted, what lies between them.
struct PatternSplit {
  Pattern pattern;
  SplitBehavior behavior = SplitBehavior::isolated;
  bool inverted = false;
};

/// Every piece that does not begin with a space gets one.
struct PrefixSpace {};

/// The steps of a pre-tokenisation: each cuts every piece of the one before. That ByteLevel also respells bytes as
/// characters is left to the model, which reads bytes.
using PreTokenizer = std::vector<std::variant<DigitsSplit, PatternSplit, PrefixSpace>>;

/// Runs a PreTokenizer; holds its working memory, so: one object per thread. Pieces stay valid as long as the object
/// and the text do.
class PreTokenization {
 public:
  /// `steps` must outlive this object.
  explicit PreTokenization(const PreTokenizer& steps) : steps_(&steps), work_(steps.size()) {
    for (std::size_t i = 0; i < steps.size(); ++i) {
      if (const auto* split = std::get_if<PatternSplit>(&steps[i])) work_[i].search.emplace(split->pattern);
    }
  }

  /// Calls sink(std::string_view piece) for every piece of `text` (valid UTF-8), in order; pieces are not empty.
  template <class Sink>
  void split(std::string_view text, Sink&& sink) {
    run(0, text, sink);
  }

 private:
  struct Span {
    std::size_t begin, end;
    bool delimiter;
  };
  struct Work {
    std::optional<PatternSearch> search;
    std::vector<Span> spans;
  };

  template <class Sink>
  void run(std::size_t step, std::string_view piece, Sink& sink) {
    if (piece.empty()) return;
    if (step == steps_->size()) return sink(piece);
    const auto next = [&](std::size_t begin, std::size_t end) {
      run(step + 1, piece.substr(begin, end - begin), sink);
    };
    if (const auto* digits = std::get_if<DigitsSplit>(&(*steps_)[step])) {
      split_numbers(piece, digits->individual, next);
    } else if (const auto* split = std::get_if<PatternSplit>(&(*steps_)[step])) {
      split_matches(piece, *split, work_[step], next);
    } else if (piece.front() == ' ') {
      next(0, piece.size());
    } else {
      run(step + 1, prefixed_.emplace_back(std::string(1, ' ').append(piece)), sink);
    }
  }

  template <class Next>
  static void split_numbers(std::string_view piece, bool individual, const Next& next) {
    std::size_t begin = 0, at = 0;
    bool in_numbers = false;
    while (at < piece.size()) {
      const Utf8Step step = utf8_step(piece.substr(at));
      const bool number = is_number(step.code);
      if (at > begin && (number != in_numbers || (number && individual))) {
        next(begin, at);
        begin = at;
      }
      in_numbers = number;
      at += step.length;
    }
    next(begin, at);
  }

  template <class Next>
  static void split_matches(std::string_view piece, const PatternSplit& split, Work& work, const Next& next) {
    if (split.behavior == SplitBehavior::isolated) {  // the usual one needs no list
      return each_span(piece, *work.search, split.inverted, [&](Span span) { next(span.begin, span.end); });
    }
    work.spans.clear();
    each_span(piece, *work.search, split.inverted, [&](Span span) { work.spans.push_back(span); });
    merge(work.spans, split.behavior);
    for (const Span& span : work.spans) {
      if (!span.delimiter || split.behavior != SplitBehavior::removed) next(span.begin, span.end);
    }
  }

  // Visits matches and gaps in order. A match may be empty: it still separates its neighbours.
  template <class Visit>
  static void each_span(std::string_view piece, const PatternSearch& search, bool inverted, const Visit& visit) {
    std::size_t gap = 0, from = 0, begin = 0, end = 0;
    std::size_t last_end = std::string_view::npos;
    while (from <= piece.size() && search.next(piece, from, begin, end)) {
      from = end;
      if (begin == end) {  // go on behind the next character; an empty match right behind a match does not count
        from = end < piece.size() ? end + utf8_step(piece.substr(end)).length : end + 1;
        if (end == last_end) continue;
      }
      last_end = end;
      if (gap < begin) visit(Span{gap, begin, inverted});
      visit(Span{begin, end, !inverted});
      gap = end;
    }
    if (gap < piece.size()) visit(Span{gap, piece.size(), inverted});
  }

  // Joins spans as the behaviour says; a joined span is no delimiter any more for what follows.
  static void merge(std::vector<Span>& spans, SplitBehavior behavior) {
    if (behavior == SplitBehavior::removed) return;
    const bool backwards = behavior == SplitBehavior::merged_with_next;
    if (backwards) std::reverse(spans.begin(), spans.end());
    std::vector<Span> joined;
    bool previous = false;
    for (const Span& span : spans) {
      const bool join =
          behavior == SplitBehavior::contiguous ? span.delimiter == previous : span.delimiter && !previous;
      if (!join || joined.empty()) {
        joined.push_back(span);
      } else if (backwards) {
        joined.back().begin = span.begin;
      } else {
        joined.back().end = span.end;
      }
      previous = span.delimiter;
    }
    if (backwards) std::reverse(joined.begin(), joined.end());
    spans = std::move(joined);
  }

  const PreTokenizer* steps_;
  std::vector<Work> work_;
  std::deque<std::string> prefixed_;  // never moves its strings: pieces point into them
};

}  // namespace typeformer
