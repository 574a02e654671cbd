#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/base/error.h"

struct pcre2_real_code_8;

namespace stepop {

/// What is wrong with a regular expression, in PCRE2's words, and the byte where PCRE2 noticed it.
class RegularExpressionError : public Error {
 public:
  RegularExpressionError(const std::string& problem, size_t place);

  std::string problem;
  size_t place;
};

/// A regular expression of PCRE2, the only engine of regular expressions here. A search that takes
/// too many steps or too much memory ends with an Error; the stack stays small.
class RegularExpression {
 public:
  enum class Kind {
    kBytes,    ///< Each byte is a character; `\w` and other classes are those of ASCII.
    kUnicode,  ///< Texts are UTF-8, classes are Unicode's, groups do not capture, and `^` and `$`
               ///< match at each line. Made for many searches: compiled to machine code.
  };

  struct Place {
    size_t first;
    size_t end;
  };

  /// `is_timed`: `find` also counts the processor's time, since PCRE2 counts no steps of
  /// repetitions within look-aheads. Throws RegularExpressionError.
  explicit RegularExpression(std::string_view pattern, Kind kind = Kind::kBytes,
                             bool is_timed = false);

  /// Whether a part of `text` matches.
  bool is_in(std::string_view text) const;

  /// The first match in `text`, and behind it the text of each group: empty for a group without
  /// one. None when nothing matches.
  std::optional<std::vector<std::string>> groups_in(std::string_view text) const;

  /// The first match at or after `from`, where a character begins. With kUnicode, `text` must be
  /// valid UTF-8. A place of the text that takes more than kFewSteps steps subtracts them from
  /// `budget`; throws Error when none are left.
  std::optional<Place> find(std::string_view text, size_t from, int64_t& budget) const;

  static constexpr uint32_t kFewSteps = 1'000;

 private:
  int search(std::string_view text, size_t from, size_t last, uint32_t most_steps,
             int64_t& budget) const;
  std::optional<Place> find_slowly(std::string_view text, size_t& from, int64_t& budget) const;

  std::shared_ptr<const pcre2_real_code_8> code_;
  bool is_timed_;
};

}  // namespace stepop
