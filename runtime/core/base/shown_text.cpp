#include "runtime/core/base/shown_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "runtime/core/base/text.h"

namespace stepop {
namespace {

/// The code point of `text`, a single UTF-8 character.
uint32_t code_of(std::string_view text) {
  constexpr unsigned char kLead[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
  uint32_t code = static_cast<unsigned char>(text[0]) & kLead[text.size()];
  for (const char c : text.substr(1)) code = code << 6 | (static_cast<unsigned char>(c) & 0x3f);
  return code;
}

/// Whether the character has Unicode's property Bidi_Control.
bool turns_writing(uint32_t code) {
  return code == 0x61c || code == 0x200e || code == 0x200f || (code >= 0x202a && code <= 0x202e) ||
         (code >= 0x2066 && code <= 0x2069);
}

bool is_control(uint32_t code) { return code < 0x20 || (code >= 0x7f && code < 0xa0); }

std::string shown(std::string_view text, std::string_view kept, std::string_view backslash = "\\") {
  std::string result;
  while (!text.empty()) {
    const size_t length = std::max<size_t>(utf8_length(text), 1);  // bytes that are not UTF-8 stay
    const uint32_t code = code_of(text.substr(0, length));
    const bool is_kept = length == 1 && kept.find(text[0]) != std::string_view::npos;
    if (turns_writing(code)) {
      result += fmt::format("{}u{:04x}", backslash, code);
    } else if (is_control(code) && !is_kept && utf8_length(text) > 0) {
      result += fmt::format("{}x{:02x}", backslash, code);
    } else {
      result += text.substr(0, length);
    }
    text.remove_prefix(length);
  }
  return result;
}

}  // namespace

std::string shown_text(std::string_view text) { return shown(text, "\t\n"); }
std::string shown_in_line(std::string_view text) { return shown(text, ""); }
std::string shown_json(std::string_view json) { return shown(json, "\t\n\r", "\\\\"); }

}  // namespace stepop
