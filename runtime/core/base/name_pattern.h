#pragma once

#include <bitset>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace stepop {

/// A regular expression in ECMAScript's syntax, as std::regex reads it, that is looked for in
/// names. Whatever the pattern, the time is at most in proportion to its length times that of the
/// name, where std::regex may need years, and no pattern exhausts the stack. In return it has no
/// references to groups (`\1`).
///
/// It has: literals, `.`, `[a-z]`, `[^a-z]`, `[[:alpha:]]`, `\d \w \s` and `\D \W \S`; `*`, `+`,
/// `?`, `{2}`, `{2,}`, `{2,5}`, also lazy ones; groups and `|`; `^`, `$`, `\b`, `\B`; `(?=...)` and
/// `(?!...)`; `\t \n \r \f \v \0 \x41`.
class NamePattern {
 public:
  /// Throws Error that says what is wrong, and where in `pattern`. At most kMostBytes.
  explicit NamePattern(const std::string& pattern);

  /// Whether a part of `name` matches.
  bool is_in(std::string_view name) const;

  static constexpr size_t kMostBytes = 10'000;

 private:
  friend class NamePatternParser;

  using Set = std::bitset<256>;

  enum class Kind : uint8_t { kSet, kSplit, kBegin, kEnd, kWordEdge, kNoWordEdge, kLook, kMatch };

  struct State {
    Kind kind = Kind::kMatch;
    bool is_negative = false;  ///< Of kLook.
    int32_t set = 0;           ///< Of kSet, in `sets_`.
    int32_t next = -1;
    int32_t other = -1;  ///< Of kSplit the second way, of kLook where what is looked for begins.
  };

  class Search;

  std::vector<State> states_;
  std::vector<Set> sets_;
  int32_t start_ = 0;
};

}  // namespace stepop
