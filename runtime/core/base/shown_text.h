#pragma once

#include <string>
#include <string_view>

namespace stepop {

/// `text` as a terminal or a page may show it, whoever named the files in it: control characters
/// other than tab and newline, and those that turn the direction of writing round, are written as
/// `\x1b` and `\u202e`.
std::string shown_text(std::string_view text);

/// The same of a cell of a table, in which a tab and a newline have no place either.
std::string shown_in_line(std::string_view text);

/// JSON whose texts are read as `shown_text` writes them: `\\u202e` in place of the character.
std::string shown_json(std::string_view json);

}  // namespace stepop
