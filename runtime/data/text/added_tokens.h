#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stepop {

/// A text that is one token wherever it occurs, such as `<|endoftext|>`.
struct AddedToken {
  std::string content;
  int32_t id = 0;
  bool is_single_word = false;  ///< The token is not found within a word.
  bool takes_left = false;      ///< The token includes the white space before it.
  bool takes_right = false;     ///< The token includes the white space after it.
};

/// Finds added tokens in texts: the first match, and the longest at that place.
class AddedTokens {
 public:
  void add(AddedToken token);
  bool empty() const { return tokens_.empty(); }

  /// A part of a text: an added token, or the text between two added tokens.
  struct Part {
    size_t first;
    size_t end;
    std::optional<int32_t> id;
  };
  std::vector<Part> split(std::string_view text) const;

 private:
  const AddedToken* longest_at(std::string_view text) const;

  std::vector<AddedToken> tokens_;
  std::array<std::vector<size_t>, 256> by_first_byte_;  ///< Sorted, the longest first.
};

}  // namespace stepop
