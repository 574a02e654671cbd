#pragma once

#include <initializer_list>
#include <string_view>
#include <vector>

namespace stepop {

/// A word of C++ source.
struct CppToken {
  enum class Kind {
    kName,  ///< An identifier or keyword.
    kNumber,
    kText,  ///< A string or character literal, with its quotes.
    kSign,  ///< `->`, `::`, `...`, or one other character.
  };

  Kind kind = Kind::kSign;
  std::string_view text;  ///< Part of the source.
  int line = 0;           ///< From 1.
  int column = 0;         ///< From 1, in bytes.

  bool is(std::string_view expected) const { return kind != Kind::kText && text == expected; }
  bool is_one_of(std::initializer_list<std::string_view> texts) const;
  bool is_name() const { return kind == Kind::kName; }
};

/// The words of a C++ source, without comments and preprocessor lines. Source that no compiler
/// takes gives some words as well. `source` must outlive the tokens.
std::vector<CppToken> cpp_tokens(std::string_view source);

/// Finds the ways through them.
class CppCode {
 public:
  explicit CppCode(std::string_view source);

  size_t size() const { return tokens_.size(); }
  /// An empty one beyond the end.
  const CppToken& at(size_t position) const;

  /// Whether a bracket other than `<` opens here.
  bool opens(size_t position) const;
  /// The position behind the bracket that closes the one at `position`; the end when none does.
  size_t behind(size_t position) const { return behind_[position]; }
  /// The same for a `<`.
  size_t behind_angles(size_t position) const;
  /// The next position on the same level.
  size_t next(size_t position) const { return opens(position) ? behind(position) : position + 1; }
  /// The end of the expression that begins here: its `,`, `;` or closing bracket.
  size_t expression_end(size_t position) const;

 private:
  std::vector<CppToken> tokens_;
  std::vector<size_t> behind_;  ///< For each opening bracket.
};

}  // namespace stepop
