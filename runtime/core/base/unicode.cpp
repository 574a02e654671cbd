#include "runtime/core/base/unicode.h"

#include <fmt/format.h>
#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <vector>

#include "runtime/core/base/error.h"
#include "runtime/core/base/text.h"

namespace stepop {
namespace {

constexpr auto kCanonical = static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_DECOMPOSE);

int combining_class(int32_t character) { return utf8proc_get_property(character)->combining_class; }

void decompose(char32_t character, std::vector<int32_t>& out) {
  std::array<utf8proc_int32_t, 8> parts = {};  // canonical decompositions have 4 at most
  int unused = UTF8PROC_BOUNDCLASS_START;
  const auto count =
      utf8proc_decompose_char(static_cast<utf8proc_int32_t>(character), parts.data(),
                              static_cast<utf8proc_ssize_t>(parts.size()), kCanonical, &unused);
  if (count < 0) throw Error(fmt::format("the text is not Unicode: {}", utf8proc_errmsg(count)));
  out.insert(out.end(), parts.begin(), parts.begin() + count);
}

/// The decomposed text, with marks in canonical order. utf8proc's own order of them takes time that
/// is quadratic in their number.
std::vector<int32_t> decomposed(std::string_view text) {
  std::vector<int32_t> out;
  for (size_t at = 0; at < text.size();) decompose(next_character(text, at), out);
  for (auto at = out.begin(); at != out.end();) {
    if (combining_class(*at) == 0) {
      ++at;
      continue;
    }
    const auto end = std::find_if(at, out.end(), [](int32_t c) { return combining_class(c) == 0; });
    std::stable_sort(at, end,
                     [](int32_t a, int32_t b) { return combining_class(a) < combining_class(b); });
    at = end;
  }
  return out;
}

std::string utf8_of(const std::vector<int32_t>& characters) {
  std::string text;
  for (const int32_t character : characters) {
    append_character(text, static_cast<char32_t>(character));
  }
  return text;
}

bool is_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return static_cast<signed char>(c) >= 0; });
}

utf8proc_category_t category_of(char32_t character) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(character));
}

}  // namespace

bool is_white_space(char32_t c) {
  if (c < 0x80) return c == ' ' || (c >= 9 && c <= 13);
  return c == 0x85 || c == 0xa0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200a) || c == 0x2028 ||
         c == 0x2029 || c == 0x202f || c == 0x205f || c == 0x3000;
}

bool is_word_character(char32_t c) {
  const auto category = category_of(c);
  const bool is_letter_mark_or_number =
      category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_NL;
  if (is_letter_mark_or_number || category == UTF8PROC_CATEGORY_PC) return true;
  return (c >= 0x24b6 && c <= 0x24e9) || (c >= 0x1f130 && c <= 0x1f149) ||
         (c >= 0x1f150 && c <= 0x1f169) || (c >= 0x1f170 && c <= 0x1f189);
}

bool is_number(char32_t c) {
  const auto category = category_of(c);
  return category >= UTF8PROC_CATEGORY_ND && category <= UTF8PROC_CATEGORY_NO;
}

bool is_punctuation(char32_t c) {
  const auto category = category_of(c);
  return category >= UTF8PROC_CATEGORY_PC && category <= UTF8PROC_CATEGORY_PO;
}

void append_character(std::string& text, char32_t c) {
  std::array<utf8proc_uint8_t, 4> bytes = {};
  const auto count = utf8proc_encode_char(static_cast<utf8proc_int32_t>(c), bytes.data());
  text.append(bytes.begin(), bytes.begin() + count);
}

std::string nfd(std::string_view text) {
  return is_ascii(text) ? std::string(text) : utf8_of(decomposed(text));
}

std::string nfc(std::string_view text) {
  if (is_ascii(text)) return std::string(text);
  std::vector<int32_t> parts = decomposed(text);
  const auto count =
      utf8proc_normalize_utf32(parts.data(), static_cast<utf8proc_ssize_t>(parts.size()),
                               static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
  if (count < 0) throw Error(fmt::format("the text is not Unicode: {}", utf8proc_errmsg(count)));
  parts.resize(static_cast<size_t>(count));
  return utf8_of(parts);
}

std::string lower_case(std::string_view text) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const char32_t character = next_character(text, at);
    if (character == 0x130) {
      out += "i\xcc\x87";  // the only capital letter whose small letter is two characters
    } else if (character < 0x80) {
      out += static_cast<char>(character >= 'A' && character <= 'Z' ? character + 32 : character);
    } else {
      append_character(
          out, static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(character))));
    }
  }
  return out;
}

std::string with_replacements(std::string_view bytes) {
  if (is_utf8(bytes)) return std::string(bytes);
  std::string text;
  for (size_t at = 0; at < bytes.size();) {
    if (const size_t length = utf8_length(bytes.substr(at)); length > 0) {
      text += bytes.substr(at, length);
      at += length;
      continue;
    }
    text += "\xef\xbf\xbd";
    // The longest valid beginning of a character is replaced by one U+FFFD.
    const auto first = static_cast<unsigned char>(bytes[at++]);
    const size_t wanted = first >= 0xf0 && first <= 0xf4  ? 3
                          : first >= 0xe0 && first < 0xf0 ? 2
                                                          : 0;
    for (size_t i = 0; i + 1 < wanted && at < bytes.size(); ++i) {
      const auto next = static_cast<unsigned char>(bytes[at]);
      const bool is_first_of_them = i == 0;
      const unsigned char low = is_first_of_them && first == 0xe0   ? 0xa0
                                : is_first_of_them && first == 0xf0 ? 0x90
                                                                    : 0x80;
      const unsigned char high = is_first_of_them && first == 0xed   ? 0x9f
                                 : is_first_of_them && first == 0xf4 ? 0x8f
                                                                     : 0xbf;
      if (next < low || next > high) break;
      ++at;
    }
  }
  return text;
}

}  // namespace stepop
