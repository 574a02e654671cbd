#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <limits>
#include <optional>
#include <string_view>

#include "runtime/config/yaml_reader.h"

namespace stepop {
namespace {

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
  if (errno == ERANGE) return Value(text);  // larger than an int: kept as it was written
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

}  // namespace stepop
