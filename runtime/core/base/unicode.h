#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace stepop {

/// The property White_Space.
bool is_white_space(char32_t character);

/// The characters of \w: letters, marks, decimal numbers, connecting punctuation and other
/// letter-like characters.
bool is_word_character(char32_t character);

/// The categories N and P.
bool is_number(char32_t character);
bool is_punctuation(char32_t character);

/// The character at `at`; moves `at` past the character. The text is UTF-8.
inline char32_t next_character(std::string_view text, size_t& at) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(at);
  if (first < 0x80) return text[at++];
  if (first < 0xe0) {
    at += 2;
    return static_cast<char32_t>((first & 0x1f) << 6 | (byte(at - 1) & 0x3f));
  }
  if (first < 0xf0) {
    at += 3;
    return static_cast<char32_t>((first & 0x0f) << 12 | (byte(at - 2) & 0x3f) << 6 |
                                 (byte(at - 1) & 0x3f));
  }
  at += 4;
  return static_cast<char32_t>((first & 0x07) << 18 | (byte(at - 3) & 0x3f) << 12 |
                               (byte(at - 2) & 0x3f) << 6 | (byte(at - 1) & 0x3f));
}

void append_character(std::string& text, char32_t character);

/// The normal forms C and D (Unicode Standard Annex 15) of UTF-8.
std::string nfc(std::string_view text);
std::string nfd(std::string_view text);

/// The text with each character replaced by its small letter, without regard to its neighbours.
std::string lower_case(std::string_view text);

/// The text with invalid UTF-8 replaced by U+FFFD, as with Python's errors="replace".
std::string with_replacements(std::string_view bytes);

}  // namespace stepop
