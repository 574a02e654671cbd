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

/// A regular expression of the kind that tokenizers use to split texts, in Oniguruma's syntax:
/// characters and their escapes, `.`, `[...]`, `\s \d \w` and `\p{L}` with general categories (and
/// their opposites), groups `(...)`, `(?:...)` and `(?i:...)`, `|`, look-ahead `(?=...)` and
/// `(?!...)`, and the quantifiers `? * + {n,m}`, greedy, lazy (`??`) or possessive (`?+`).
class SplitPattern {
 public:
  /// Throws Error for unsupported syntax, with the syntax and its place.
  explicit SplitPattern(std::string pattern);

  /// The number of steps that all searches in a text may take together.
  static int64_t budget_for(std::string_view text);

  /// The beginning and end of the first match at or after `from` in `text`, which is UTF-8.
  /// Subtracts its steps from `budget`, and throws Error when none are left.
  std::optional<std::pair<size_t, size_t>> find(std::string_view text, size_t from,
                                                int64_t& budget) const;

  const std::string& pattern() const { return pattern_; }

 private:
  friend class SplitPatternParser;

  struct Step {
    enum class Kind : uint8_t {
      kSet,         ///< One character of set `a`.
      kRepeat,      ///< `least` to `most` characters of the set, as many as possible; on failure
                    ///< fewer.
      kRepeatOnly,  ///< The same, but never fewer on failure.
      kFork,        ///< Continues at `a`; on failure at `b`.
      kJump,        ///< Continues at `a`.
      kAhead,       ///< Continues at `a` if the steps after this one, up to their kEnd, match here.
      kNotAhead,    ///< Continues at `a` if these steps do not match.
      kOnly,        ///< The same as kAhead, but continues after the match and drops the match's
                    ///< other ways.
      kEnd,         ///< The end of the pattern or of a look-ahead.
    };
    Kind kind = Kind::kEnd;
    size_t a = 0;
    size_t b = 0;
    uint32_t least = 0;
    uint32_t most = 0;
  };

  /// The end of a match that begins at `at`; subtracts its steps from `budget`.
  std::optional<size_t> match(std::string_view text, size_t at, size_t first_step,
                              int64_t& budget) const;

  std::string pattern_;
  std::vector<Step> steps_;
  std::vector<CharacterSet> sets_;
};

}  // namespace stepop
