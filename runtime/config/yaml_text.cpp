#include "runtime/config/yaml_text.h"

#include "runtime/config/value.h"

namespace stepop {
namespace {

/// The `line`th line of `text`, counted from 0.
std::string_view line_of(std::string_view text, int line) {
  for (; line > 0; --line) {
    const size_t end = text.find('\n');
    if (end == std::string_view::npos) return {};
    text.remove_prefix(end + 1);
  }
  return text.substr(0, text.find_first_of("\r\n"));
}

bool has_tab_indent(std::string_view line) {
  return line.substr(0, line.find_first_not_of(" \t")).find('\t') != std::string_view::npos;
}

struct Explanation {
  const char* theirs;
  const char* ours;
};

constexpr Explanation kExplanations[] = {
    {"illegal EOF in scalar", "a quote is opened and never closed"},
    {"end of sequence flow not found", "a [ is never closed, or a comma is missing"},
    {"end of map flow not found", "a { is never closed, or a comma is missing"},
    {"illegal flow end", "a ] or } closes nothing"},
    {"illegal map value",
     "no key can stand here: check the indentation, and quote text with \": \""},
    {"end of map not found", "this does not continue the map above: check the indentation"},
    {"end of sequence not found", "this does not continue the list above: check the indentation"},
    {"unknown token", "text that begins with this character needs quotes"},
};

/// The number of bytes of the UTF-8 character at the beginning of `text`; 0 when there is none.
size_t utf8_length(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  const size_t length = lead < 0x80   ? 1
                        : lead < 0xc2 ? 0
                        : lead < 0xe0 ? 2
                        : lead < 0xf0 ? 3
                        : lead < 0xf5 ? 4
                                      : 0;
  if (length > text.size()) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  const bool is_overlong = (lead == 0xe0 && byte(1) < 0xa0) || (lead == 0xf0 && byte(1) < 0x90);
  const bool is_beyond = (lead == 0xed && byte(1) > 0x9f) || (lead == 0xf4 && byte(1) > 0x8f);
  return is_overlong || is_beyond ? 0 : length;
}

}  // namespace

std::optional<BadByte> find_bad_byte(std::string_view text) {
  int line = 0;
  while (!text.empty()) {
    const auto byte = static_cast<unsigned char>(text[0]);
    const size_t length = utf8_length(text);
    if (length == 0) return BadByte{byte, line, "not UTF-8 text"};
    const bool is_space = byte == '\t' || byte == '\n' || byte == '\r';
    if ((byte < 0x20 && !is_space) || byte == 0x7f)
      return BadByte{byte, line, "a control character"};
    if (byte == '\n') ++line;
    text.remove_prefix(length);
  }
  return std::nullopt;
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const size_t length = utf8_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

std::string explain_yaml(const std::string& message, std::string_view text, int line) {
  std::string explanation = message;
  for (const auto& [theirs, ours] : kExplanations) {
    if (message == theirs) explanation = ours;
  }
  const std::string_view content = line < 0 ? std::string_view{} : line_of(text, line);
  if (has_tab_indent(content) || (line > 0 && has_tab_indent(line_of(text, line - 1)))) {
    explanation = "a tab cannot indent, use spaces";
  }
  const size_t start = content.find_first_not_of(" \t");
  if (start == std::string_view::npos) return explanation;
  return explanation + ", at " + Value(std::string(content.substr(start))).describe();
}

}  // namespace stepop
