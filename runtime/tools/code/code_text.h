#pragma once

#include <string>

namespace stepop {

/// A C++ source without comments and with single blanks: two sources for which it is the same
/// compile to the same, lines of errors included, as no line moves. A source whose comments are not
/// easily told from its code - with raw strings, or lines that a backslash continues - comes back
/// whole.
std::string code_without_comments(const std::string& source);

}  // namespace stepop
