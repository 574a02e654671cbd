#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/data/text/character_set.h"

namespace stepop {

/// A regular expression of the kind by which tokenizers split texts, as Oniguruma reads it:
/// characters and their escapes, `.`, `[...]`, `\s \d \w` and `\p{L}` with general categories (and
/// their opposites), groups `(...)`, `(?:...)` and `(?i:...)`, `|`, look-ahead `(?=...)` and
/// `(?!...)`, and the quantifiers `? * + {n,m}`, greedy, lazy (`??`) or possessive (`?+`).
class SplitPattern {
 public:
  /// Throws Error for what is not supported, with what it is and where it stands.
  explicit SplitPattern(std::string pattern);

  /// How many steps all searches in a text may take together.
  static int64_t budget_for(std::string_view text);

  /// Where the first match at or behind `from` begins and ends in `text`, which is UTF-8. Takes its
  /// steps from `budget`, and throws Error when there are none left.
  std::optional<std::pair<size_t, size_t>> find(std::string_view text, size_t from,
                                                int64_t& budget) const;

  const std::string& pattern() const { return pattern_; }

 private:
  friend class SplitPatternParser;

  struct Step {
    enum class Kind : uint8_t {
      kSet,         ///< One character of set `a`.
      kRepeat,      ///< `least` to `most` of them, as many as there are; on failure fewer.
      kRepeatOnly,  ///< As many as there are, and never fewer.
      kFork,        ///< Goes on at `a`; on failure at `b`.
      kJump,        ///< Goes on at `a`.
      kAhead,       ///< Goes on at `a` if what follows this step, up to its kEnd, matches here.
      kNotAhead,    ///< The same if it does not.
      kOnly,        ///< The same as kAhead, behind the match, whose other ways are forgotten.
      kEnd,         ///< Of the pattern or of what is looked for ahead.
    };
    Kind kind = Kind::kEnd;
    size_t a = 0;
    size_t b = 0;
    uint32_t least = 0;
    uint32_t most = 0;
  };

  /// Where a match that begins at `at` ends; counts its steps down in `budget`.
  std::optional<size_t> match(std::string_view text, size_t at, size_t first_step,
                              int64_t& budget) const;

  std::string pattern_;
  std::vector<Step> steps_;
  std::vector<CharacterSet> sets_;
};

}  // namespace stepop
