#include "runtime/tools/code/code_text.h"

#include <algorithm>
#include <cctype>
#include <cstddef>

namespace stepop {
namespace {

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v'; }

bool is_of_word(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return std::isalnum(byte) != 0 || c == '_' || byte >= 0x80;
}

bool has_rare_parts(const std::string& source) {
  if (source.find("R\"") != std::string::npos) return true;
  for (size_t i = source.find('\\'); i != std::string::npos; i = source.find('\\', i + 1)) {
    const size_t next = std::find_if_not(source.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                                         source.end(), is_blank) -
                        source.begin();
    if (next == source.size() || source[next] == '\n') return true;
  }
  return false;
}

/// The end of the word, number or literal that begins at `i`; `npos` for a literal that does not
/// end on its line.
size_t end_of_token(const std::string& source, size_t i) {
  const char first = source[i];
  size_t end = i + 1;
  if (first == '"' || first == '\'') {
    while (end < source.size() && source[end] != first) {
      if (source[end] == '\n') return std::string::npos;
      end += source[end] == '\\' ? 2 : 1;
    }
    return end < source.size() ? end + 1 : std::string::npos;
  }
  if (!is_of_word(first)) return end;
  const bool is_number = std::isdigit(static_cast<unsigned char>(first)) != 0;  // 1'000
  while (end < source.size() && (is_of_word(source[end]) || (is_number && source[end] == '\''))) {
    ++end;
  }
  return end;
}

}  // namespace

std::string code_without_comments(const std::string& source) {
  if (has_rare_parts(source)) return source;
  std::string code;
  bool follows_blank = false;
  bool begins_line = true;
  for (size_t i = 0; i < source.size();) {
    if (is_blank(source[i])) {
      follows_blank = true;
      ++i;
    } else if (source[i] == '\n') {
      code += '\n';
      follows_blank = false;
      begins_line = true;
      ++i;
    } else if (source.compare(i, 2, "//") == 0) {
      i = std::min(source.find('\n', i), source.size());
    } else if (source.compare(i, 2, "/*") == 0) {
      const size_t end = source.find("*/", i + 2);
      if (end == std::string::npos) return source;
      for (; i < end + 2; ++i) {
        if (source[i] == '\n') code += '\n';
      }
      follows_blank = true;
    } else {
      if (follows_blank && !code.empty() && code.back() != '\n') code += ' ';
      follows_blank = false;
      size_t end = end_of_token(source, i);
      if (source[i] == '#' && begins_line) {  // kept unchanged: <a//b.h>
        end = std::min(source.find('\n', i), source.size());
        if (source.find("/*", i) < end) return source;
      }
      if (end == std::string::npos) return source;
      begins_line = false;
      code.append(source, i, end - i);
      i = end;
    }
  }
  return code;
}

}  // namespace stepop
