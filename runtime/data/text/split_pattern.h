#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "runtime/core/base/regular_expression.h"

namespace stepop {

/// A regular expression of the kind that tokenizers use to split texts, in Oniguruma's syntax;
/// PCRE2 searches. What the two read differently is translated: `\s`, `\w`, `\v`, `\u0041`, `{,3}`,
/// `\p{Letter}`. Each of the other differences is an error: classes in classes, `[a&&b]`, `\h`, a
/// quantifier behind `{n,m}`, options other than `(?i:...)`.
class SplitPattern {
 public:
  /// Throws Error for wrong or unsupported syntax, with its place.
  explicit SplitPattern(std::string pattern);

  /// The number of steps that all searches in a text may take together.
  static int64_t budget_for(std::string_view text);

  /// The beginning and end of the first match at or after `from` in `text`, which is UTF-8.
  /// Subtracts the steps of costly places from `budget`, and throws Error when none are left.
  std::optional<std::pair<size_t, size_t>> find(std::string_view text, size_t from,
                                                int64_t& budget) const;

  const std::string& pattern() const { return pattern_; }

 private:
  std::string pattern_;
  RegularExpression expression_;
};

}  // namespace stepop
