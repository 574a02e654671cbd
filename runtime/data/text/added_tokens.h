#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stepop {

/// A text that is one token wherever it stands, such as `<|endoftext|>`.
struct AddedToken {
  std::string content;
  int32_t id = 0;
  bool is_single_word = false;  ///< Not within a word.
  bool takes_left = false;      ///< With the white space before it,
  bool takes_right = false;     ///< behind it.
};

/// Finds such texts in others: the first, of those the longest.
class AddedTokens {
 public:
  void add(AddedToken token);
  bool empty() const { return tokens_.empty(); }

  /// A part of a text: what lies between tokens, or one of them.
  struct Part {
    size_t first;
    size_t end;
    std::optional<int32_t> id;
  };
  std::vector<Part> split(std::string_view text) const;

 private:
  const AddedToken* longest_at(std::string_view text) const;

  std::vector<AddedToken> tokens_;
  std::array<std::vector<size_t>, 256> by_first_byte_;  ///< The longest first.
};

}  // namespace stepop
