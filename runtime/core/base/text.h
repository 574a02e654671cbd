#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace stepop {

/// Lists longer than this are cut in messages.
inline constexpr size_t kMostListed = 10;

/// `a, b, c`, or `a, b, c and 12 more`; `none` for an empty list.
std::string list_text(const std::vector<std::string>& names, size_t most = kMostListed);

/// The same, with `separator` (such as a line break and spaces) before each name; empty for an
/// empty list.
std::string list_lines(const std::vector<std::string>& names, std::string_view separator,
                       size_t most = kMostListed);

/// The number of bytes of the UTF-8 character at the beginning of `text`; 0 when there is none
/// (RFC 3629: no overlong forms, no surrogates, at most U+10FFFF).
size_t utf8_length(std::string_view text);

bool is_utf8(std::string_view text);

/// Whether this byte continues a character of UTF-8.
inline bool is_inside_character(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

/// The largest position of a text, at most `at`, at which a character of UTF-8 begins or the text
/// ends: where the text can be cut.
size_t cut_position(std::string_view text, size_t at);

/// A text of more than `most_bytes` bytes cut to them and followed by `mark`; never cut inside a
/// character.
std::string shortened(std::string_view text, size_t most_bytes, std::string_view mark = "...");

/// The columns of a terminal that `text` takes: its characters, not its bytes.
size_t text_width(std::string_view text);

/// `names`, each cut in its middle (`2026-11-21...digits`) to `most` columns. Where that would make
/// two different ones look alike, those stay whole.
std::vector<std::string> shortened_names(const std::vector<std::string>& names, size_t most);

/// Slash-separated paths, each by its last words, as many as tell it from the others: `lr` for
/// `optimizer/lr`.
std::vector<std::string> short_paths(const std::vector<std::string>& paths);

/// What the compiler calls a symbol or a type, as people write it: `stepop::Batch` for
/// `N6stepop5BatchE`. `name` itself when it is no such name.
std::string demangled(const std::string& name);

}  // namespace stepop
