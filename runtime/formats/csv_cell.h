#pragma once

#include <string>

namespace stepop {

/// A text as one cell of a CSV file that is separated by commas: in quotes where RFC 4180 wants
/// them.
inline std::string csv_cell(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

}  // namespace stepop
