#include "runtime/data/text/unicode.h"

#include <algorithm>
#include <array>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "runtime/core/base/text.h"
#include "runtime/data/text/unicode_tables.h"

namespace stepop {
namespace {

constexpr char32_t kEnd = 0x110000;

/// The value of each code point, one byte each; made from the runs at the first look-up.
std::vector<uint8_t> expanded(std::span<const CategoryRun> runs) {
  std::vector<uint8_t> values(kEnd, 0);
  for (size_t i = 0; i < runs.size(); ++i) {
    const char32_t end = i + 1 < runs.size() ? runs[i + 1].first : kEnd;
    std::fill(values.begin() + runs[i].first, values.begin() + static_cast<std::ptrdiff_t>(end),
              runs[i].value);
  }
  return values;
}

uint8_t combining_class(char32_t character) {
  static const std::vector<uint8_t> classes = expanded(kCombiningClassRuns);
  return classes[character];
}

const Decomposition* decomposition_of(char32_t character) {
  const auto found = std::lower_bound(
      kDecompositions.begin(), kDecompositions.end(), character,
      [](const Decomposition& one, char32_t wanted) { return one.character < wanted; });
  return found != kDecompositions.end() && found->character == character ? &*found : nullptr;
}

// Hangul's syllables are computed (the Unicode Standard, section 3.12).
constexpr char32_t kSyllables = 0xac00;
constexpr char32_t kLeading = 0x1100;
constexpr char32_t kVowel = 0x1161;
constexpr char32_t kTrailing = 0x11a7;
constexpr char32_t kLeadingCount = 19;
constexpr char32_t kVowelCount = 21;
constexpr char32_t kTrailingCount = 28;
constexpr char32_t kSyllableCount = kLeadingCount * kVowelCount * kTrailingCount;

void decompose(char32_t character, std::u32string& out) {
  if (character >= kSyllables && character < kSyllables + kSyllableCount) {
    const char32_t place = character - kSyllables;
    out += kLeading + place / (kVowelCount * kTrailingCount);
    out += kVowel + place % (kVowelCount * kTrailingCount) / kTrailingCount;
    if (place % kTrailingCount != 0) out += kTrailing + place % kTrailingCount;
    return;
  }
  const Decomposition* parts = character < 0xc0 ? nullptr : decomposition_of(character);
  if (parts == nullptr) {
    out += character;
    return;
  }
  decompose(parts->first, out);
  if (parts->second != 0) decompose(parts->second, out);
}

/// The decomposed text, with marks in canonical order.
std::u32string decomposed(std::string_view text) {
  std::u32string out;
  for (size_t at = 0; at < text.size();) decompose(next_character(text, at), out);
  for (size_t at = 0; at < out.size();) {
    if (combining_class(out[at]) == 0) {
      ++at;
      continue;
    }
    size_t end = at;
    while (end < out.size() && combining_class(out[end]) != 0) ++end;
    std::stable_sort(out.begin() + static_cast<std::ptrdiff_t>(at),
                     out.begin() + static_cast<std::ptrdiff_t>(end), [](char32_t a, char32_t b) {
                       return combining_class(a) < combining_class(b);
                     });
    at = end;
  }
  return out;
}

/// 0 when the two do not compose.
char32_t composition_of(char32_t first, char32_t second) {
  if (first >= kLeading && first < kLeading + kLeadingCount && second >= kVowel &&
      second < kVowel + kVowelCount) {
    return kSyllables + ((first - kLeading) * kVowelCount + second - kVowel) * kTrailingCount;
  }
  if (first >= kSyllables && first < kSyllables + kSyllableCount &&
      (first - kSyllables) % kTrailingCount == 0 && second > kTrailing &&
      second < kTrailing + kTrailingCount) {
    return first + second - kTrailing;
  }
  static const auto pairs = [] {
    std::unordered_map<uint64_t, char32_t> made;
    for (const auto& one : kDecompositions) {
      if (one.composes != 0) made[uint64_t{one.first} << 32 | one.second] = one.character;
    }
    return made;
  }();
  const auto found = pairs.find(uint64_t{first} << 32 | second);
  return found != pairs.end() ? found->second : 0;
}

std::string utf8_of(const std::u32string& characters) {
  std::string text;
  for (const char32_t character : characters) append_character(text, character);
  return text;
}

bool is_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return static_cast<signed char>(c) >= 0; });
}

char32_t small_letter(char32_t character) {
  for (const auto& run : kLowerCaseRuns) {
    if (character < run.first) break;
    if (character <= run.last && (character - run.first) % run.step == 0) {
      return static_cast<char32_t>(static_cast<int64_t>(character) + run.distance);
    }
  }
  return character;
}

}  // namespace

CategoryMask categories_named(std::string_view name) {
  static constexpr std::array<std::string_view, 30> kNames = {
      "Cn", "Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc", "Me", "Nd", "Nl", "No", "Pc", "Pd", "Ps",
      "Pe", "Pi", "Pf", "Po", "Sm", "Sc", "Sk", "So", "Zs", "Zl", "Zp", "Cc", "Cf", "Cs", "Co"};
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 7> kLong = {
      {{"Letter", "L"},
       {"Mark", "M"},
       {"Number", "N"},
       {"Punctuation", "P"},
       {"Symbol", "S"},
       {"Separator", "Z"},
       {"Other", "C"}}};
  for (const auto& [spelt_out, letter] : kLong) {
    if (name == spelt_out) name = letter;
  }
  CategoryMask mask = 0;
  for (size_t i = 0; i < kNames.size(); ++i) {
    if (name == kNames[i] || (name.size() == 1 && name[0] == kNames[i][0])) mask |= 1U << i;
  }
  return mask;
}

Category category_of(char32_t character) {
  static const std::vector<uint8_t> categories = expanded(kCategoryRuns);
  return static_cast<Category>(categories[character]);
}

bool is_white_space(char32_t c) {
  if (c < 0x80) return c == ' ' || (c >= 9 && c <= 13);
  return c == 0x85 || c == 0xa0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200a) || c == 0x2028 ||
         c == 0x2029 || c == 0x202f || c == 0x205f || c == 0x3000;
}

bool is_word_character(char32_t c) {
  static const CategoryMask mask = categories_named("L") | categories_named("M") |
                                   categories_named("Nd") | categories_named("Nl") |
                                   categories_named("Pc");
  if (is_in(c, mask)) return true;
  return (c >= 0x24b6 && c <= 0x24e9) || (c >= 0x1f130 && c <= 0x1f149) ||
         (c >= 0x1f150 && c <= 0x1f169) || (c >= 0x1f170 && c <= 0x1f189);
}

void append_character(std::string& text, char32_t c) {
  const auto add = [&](char32_t byte) { text += static_cast<char>(byte); };
  if (c < 0x80) {
    add(c);
  } else if (c < 0x800) {
    add(0xc0 | c >> 6), add(0x80 | (c & 0x3f));
  } else if (c < 0x10000) {
    add(0xe0 | c >> 12), add(0x80 | (c >> 6 & 0x3f)), add(0x80 | (c & 0x3f));
  } else {
    add(0xf0 | c >> 18), add(0x80 | (c >> 12 & 0x3f));
    add(0x80 | (c >> 6 & 0x3f)), add(0x80 | (c & 0x3f));
  }
}

std::string nfd(std::string_view text) {
  return is_ascii(text) ? std::string(text) : utf8_of(decomposed(text));
}

std::string nfc(std::string_view text) {
  if (is_ascii(text)) return std::string(text);
  const std::u32string parts = decomposed(text);
  std::u32string out;
  size_t starter = std::u32string::npos;  // the last starter in `out`
  uint8_t last_class = 0;                 // the class of the last mark after the starter
  for (const char32_t character : parts) {
    const uint8_t own_class = combining_class(character);
    const bool is_next_to_starter = starter != std::u32string::npos && out.size() == starter + 1;
    const bool is_blocked = !is_next_to_starter && last_class >= own_class;
    if (starter != std::u32string::npos && !is_blocked) {
      if (const char32_t composed = composition_of(out[starter], character)) {
        out[starter] = composed;
        continue;
      }
    }
    if (own_class == 0) starter = out.size();
    last_class = own_class;
    out += character;
  }
  return utf8_of(out);
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
      append_character(out, small_letter(character));
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
