#pragma once

#include <bitset>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace stepop {

/// A regular expression for searches in names, in ECMAScript's syntax, as std::regex reads it.
/// Whatever the pattern, the time is at most proportional to the pattern's length times the name's
/// length (std::regex may need years), and no pattern exhausts the stack. In return, references to
/// groups (`\1`) are not supported.
/// references to groups (`\1`).
///
/// Supported: literals, `.`, `[a-z]`, `[^a-z]`, `[[:alpha:]]`, `\d \w \s` and `\D \W \S`; `*`, `+`,
/// `?`, `{2}`, `{2,}`, `{2,5}`, also lazy; groups and `|`; `^`, `$`, `\b`, `\B`; `(?=...)` and
/// `(?!...)`; `\t \n \r \f \v \0 \x41`.
class NamePattern {
 public:
  /// Throws Error that says what is wrong, and where in `pattern`, and for more than kMostBytes.
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
    bool is_negative = false;  ///< For kLook.
    int32_t set = 0;           ///< For kSet, the position in `sets_`.
    int32_t next = -1;
    int32_t other = -1;  ///< For kSplit the second way; for kLook the first state of its pattern.
  };

  class Search;

  std::vector<State> states_;
  std::vector<Set> sets_;
  int32_t start_ = 0;
};

}  // namespace stepop
