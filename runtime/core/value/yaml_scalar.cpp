#include "runtime/core/value/yaml_scalar.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>

namespace stepop {

std::string quoted_yaml(const std::string& text) {
  std::string out = "\"";
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const std::string_view rest = std::string_view(text).substr(i);
    const auto next = rest.size() > 1 ? static_cast<unsigned char>(rest[1]) : 0U;
    if (byte == '"' || byte == '\\') {
      out += fmt::format("\\{}", text[i]);
    } else if (byte == '\n') {
      out += "\\n";
    } else if (byte == '\t') {
      out += "\\t";
    } else if (byte == '\r') {
      out += "\\r";
    } else if (byte < 0x20 || byte == 0x7f) {
      out += fmt::format("\\x{:02x}", byte);
    } else if (byte == 0xc2 && next < 0xa0 && next >= 0x80) {  // control characters of Latin-1
      out += fmt::format("\\x{:02x}", next);
      i += 1;
    } else if (rest.starts_with("\xe2\x80\xa8") || rest.starts_with("\xe2\x80\xa9")) {
      out += rest[2] == '\xa8' ? "\\L" : "\\P";  // line and paragraph separators
      i += 2;
    } else if (rest.starts_with("\xef\xbb\xbf")) {  // byte order mark
      out += "\\ufeff";
      i += 2;
    } else {
      out += text[i];
    }
  }
  return out + "\"";
}

std::string yaml_float(double number) {
  if (std::isnan(number)) return ".nan";
  if (std::isinf(number)) return number > 0 ? ".inf" : "-.inf";
  std::string text = fmt::format("{}", number);
  if (text.find('.') == std::string::npos) text.insert(std::min(text.find('e'), text.size()), ".0");
  return text;
}

}  // namespace stepop
