#pragma once

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "runtime/data/text/unicode.h"

namespace stepop {

/// A set of characters, as `[...]` of a regular expression describes it.
class CharacterSet {
 public:
  void add(char32_t first, char32_t last) { ranges_.emplace_back(first, last); }
  void add_categories(CategoryMask mask) { categories_ |= mask; }
  /// Adds white space, or all other characters.
  void add_white_space(bool is_negated) { (is_negated ? has_no_space_ : has_space_) = true; }
  /// Adds the characters of `\w`, or all other characters.
  void add_word(bool is_negated) { (is_negated ? has_no_word_ : has_word_) = true; }
  void negate() { is_negated_ = !is_negated_; }

  /// To be called after the last change: fills the table of ASCII.
  void finish() {
    for (char32_t c = 0; c < ascii_.size(); ++c) ascii_[c] = holds(c);
  }

  bool contains(char32_t c) const { return c < ascii_.size() ? ascii_[c] : holds(c); }

 private:
  bool holds(char32_t c) const {
    bool is_in_one = (categories_ != 0 && is_in(c, categories_)) ||
                     (has_space_ && is_white_space(c)) || (has_no_space_ && !is_white_space(c)) ||
                     (has_word_ && is_word_character(c)) || (has_no_word_ && !is_word_character(c));
    for (size_t i = 0; i < ranges_.size() && !is_in_one; ++i) {
      is_in_one = c >= ranges_[i].first && c <= ranges_[i].second;
    }
    return is_in_one != is_negated_;
  }

  std::vector<std::pair<char32_t, char32_t>> ranges_;
  CategoryMask categories_ = 0;
  bool has_space_ = false;
  bool has_no_space_ = false;
  bool has_word_ = false;
  bool has_no_word_ = false;
  bool is_negated_ = false;
  std::array<bool, 128> ascii_ = {};
};

}  // namespace stepop
