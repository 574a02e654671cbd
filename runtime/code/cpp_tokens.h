#pragma once

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
  bool is_name() const { return kind == Kind::kName; }
};

/// The words of a C++ source, without comments and preprocessor lines. Source that no compiler
/// takes gives some words as well. `source` must outlive the tokens.
std::vector<CppToken> cpp_tokens(std::string_view source);

}  // namespace stepop
