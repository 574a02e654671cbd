#pragma once

#include <string>
#include <string_view>

namespace stepop {

/// `text` in a form that is safe to show in a terminal or a page, even if it has names of foreign
/// files: control characters other than tab and newline, and characters that change the direction
/// of writing, are written as `\x1b` and `\u202e`.
std::string shown_text(std::string_view text);

/// The same for a cell of a table, where tab and newline are escaped too.
std::string shown_in_line(std::string_view text);

/// JSON whose texts read like the output of `shown_text`: `\\u202e` in place of the character.
std::string shown_json(std::string_view json);

}  // namespace stepop
