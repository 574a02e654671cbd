#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "runtime/core/base/regular_expression.h"

namespace stepop {

/// A regular expression for searches in names, in Perl's syntax as PCRE2 reads it; most of what
/// ECMAScript and Python have means the same. Each byte of a name is a character.
class NamePattern {
 public:
  /// Errors of searches name `source`, such as the place of the key that has it. Throws Error that
  /// says what is wrong, and where in `pattern`, and for more than kMostBytes.
  explicit NamePattern(const std::string& pattern, std::string source = "the pattern");

  /// Whether a part of `name` matches. Throws Error for a search that takes too many steps.
  bool is_in(std::string_view name) const;

  static constexpr size_t kMostBytes = 10'000;

 private:
  std::string source_;
  std::string pattern_;
  RegularExpression expression_;
};

}  // namespace stepop
