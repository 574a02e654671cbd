#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace stepop {

/// Longer lists are cut in messages.
inline constexpr size_t kMostListed = 10;

/// `a, b, c`, or `a, b, c and 12 more`; `none` for an empty list.
std::string list_text(const std::vector<std::string>& names, size_t most = kMostListed);

/// The same, with `separator` (such as a line break and spaces) before each name; empty for an
/// empty list.
std::string list_lines(const std::vector<std::string>& names, std::string_view separator,
                       size_t most = kMostListed);

/// The number of bytes of the UTF-8 character at the beginning of `text`; 0 when it does not begin
/// with a character (RFC 3629: no overlong forms, no surrogates, at most U+10FFFF).
size_t utf8_length(std::string_view text);

bool is_utf8(std::string_view text);

/// Whether this byte continues a UTF-8 character.
inline bool is_inside_character(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

/// The largest position up to `at` where a text can be cut: a UTF-8 character begins there, or the
/// text ends.
size_t cut_position(std::string_view text, size_t at);

/// Cuts a text to at most `most_bytes` bytes and adds `mark` if it is longer; never cuts inside a
/// character.
std::string shortened(std::string_view text, size_t most_bytes, std::string_view mark = "...");

/// The number of terminal columns of `text`: counts characters, not bytes.
size_t text_width(std::string_view text);

/// `names`, each cut in its middle (`2026-11-21...digits`) to `most` columns. Different names that
/// would look alike stay whole.
std::vector<std::string> shortened_names(const std::vector<std::string>& names, size_t most);

/// Shortens slash-separated paths to the last words that distinguish them from the others: `lr` for
/// `optimizer/lr`.
std::vector<std::string> short_paths(const std::vector<std::string>& paths);

/// The readable form of the compiler's name for a symbol or a type: `stepop::Batch` for
/// `N6stepop5BatchE`. Returns `name` itself when it is no such name.
std::string demangled(const std::string& name);

}  // namespace stepop
