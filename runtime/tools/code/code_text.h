#pragma once

#include <string>

namespace stepop {

/// A C++ source without comments and with single blanks. Two sources with the same result compile
/// to the same code, with the same lines in errors, since no line moves. If comments are hard to
/// recognize (raw strings, lines that a backslash continues), the source is returned unchanged.
std::string code_without_comments(const std::string& source);

}  // namespace stepop
