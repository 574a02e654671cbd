#include "runtime/core/value/yaml_text.h"

#include <fmt/format.h>

#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <limits>

#include "runtime/core/base/text.h"

namespace stepop {
namespace {

/// Line number `line` of `text`, counted from 0.
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

/// `batch_size:64` of such a line; empty for any other.
std::string key_without_space(std::string_view line) {
  const size_t start = line.find_first_not_of(" \t-");
  if (start == std::string_view::npos) return "";
  line.remove_prefix(start);
  const size_t end =
      line.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_/");
  const bool is_key = end != std::string_view::npos && end > 0 && line[end] == ':' &&
                      end + 1 < line.size() &&
                      std::string_view(" \t/").find(line[end + 1]) == std::string_view::npos;
  return is_key ? std::string(line.substr(0, line.find_last_not_of(" \t\r") + 1)) : "";
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
     "a key is not allowed here: check the indentation, and quote text with \": \""},
    {"end of map not found", "this does not continue the map above: check the indentation"},
    {"end of sequence not found", "this does not continue the list above: check the indentation"},
    {"unknown token", "text that begins with this character needs quotes"},
};

bool all_of(std::string_view text, std::string_view allowed) {
  return !text.empty() && text.find_first_not_of(allowed) == std::string_view::npos;
}

std::optional<Value> integer(const std::string& text) {
  const bool is_signed = text[0] == '-' || text[0] == '+';
  const std::string_view digits = std::string_view(text).substr(is_signed ? 1 : 0);
  int base = 0;
  if (all_of(digits, "0123456789")) {
    base = 10;
  } else if (!is_signed && text.starts_with("0x") &&
             all_of(digits.substr(2), "0123456789abcdefABCDEF")) {
    base = 16;
  } else if (!is_signed && text.starts_with("0o") && all_of(digits.substr(2), "01234567")) {
    base = 8;
  } else {
    return std::nullopt;
  }
  errno = 0;
  const std::string number = base == 10 ? text : text.substr(2);
  const int64_t value = std::strtoll(number.c_str(), nullptr, base);
  if (errno == ERANGE) return Value(text);  // larger than an int: keeps its spelling
  return Value(value);
}

bool is_core_float(const std::string& text) {
  size_t i = text[0] == '-' || text[0] == '+' ? 1 : 0;
  const auto digits = [&] {
    const size_t start = i;
    while (i < text.size() && std::isdigit(static_cast<unsigned char>(text[i])) != 0) ++i;
    return i - start;
  };
  const size_t whole = digits();
  size_t fraction = 0;
  if (i < text.size() && text[i] == '.') {
    ++i;
    fraction = digits();
  }
  if (whole + fraction == 0) return false;
  if (i < text.size() && (text[i] == 'e' || text[i] == 'E')) {
    ++i;
    if (i < text.size() && (text[i] == '-' || text[i] == '+')) ++i;
    if (digits() == 0) return false;
  }
  return i == text.size();
}

}  // namespace

Value plain_scalar(const std::string& text) {
  if (text.empty() || text == "~" || text == "null" || text == "Null" || text == "NULL") return {};
  if (text == "true" || text == "True" || text == "TRUE") return Value(true);
  if (text == "false" || text == "False" || text == "FALSE") return Value(false);
  if (const auto number = integer(text)) return *number;
  if (is_core_float(text)) return Value(std::strtod(text.c_str(), nullptr));
  const bool is_signed = text[0] == '-' || text[0] == '+';
  const std::string word = is_signed ? text.substr(1) : text;
  if (word == ".inf" || word == ".Inf" || word == ".INF") {
    const double infinity = std::numeric_limits<double>::infinity();
    return Value(text[0] == '-' ? -infinity : infinity);
  }
  if (text == ".nan" || text == ".NaN" || text == ".NAN") {
    return Value(std::numeric_limits<double>::quiet_NaN());
  }
  return Value(text);
}

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

std::string explain_yaml(const std::string& message, std::string_view text, int line) {
  std::string explanation = message;
  for (const auto& [theirs, ours] : kExplanations) {
    if (message == theirs) explanation = ours;
  }
  const std::string_view content = line < 0 ? std::string_view{} : line_of(text, line);
  if (has_tab_indent(content) || (line > 0 && has_tab_indent(line_of(text, line - 1)))) {
    explanation = "a tab cannot indent, use spaces";
  }
  const std::string before = line > 0 ? key_without_space(line_of(text, line - 1)) : "";
  if (explanation.starts_with("a key is not allowed here") && !before.empty()) {
    const size_t colon = before.find(':') + 1;
    return fmt::format(
        "\"{}\" in the line before is one word: write \"{} {}\", with a space after "
        "the colon",
        before, before.substr(0, colon), before.substr(colon));
  }
  const size_t start = content.find_first_not_of(" \t");
  if (start == std::string_view::npos) return explanation;
  return explanation + ", at " + Value(std::string(content.substr(start))).describe();
}

}  // namespace stepop
