#include "runtime/data/text/text_units.h"

#include <algorithm>

#include "runtime/core/base/text.h"

namespace stepop {
namespace {

constexpr size_t kMegabyte = 1 << 20;

/// The line without "\r" at its end.
std::string_view without_return(std::string_view line) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

std::string_view line_at(std::string_view text, size_t start) {
  return without_return(text.substr(start, text.find('\n', start) - start));
}

}  // namespace

TextUnits TextUnits::lines(std::string_view text, bool skips_empty) {
  TextUnits units;
  units.text_ = text;
  units.is_of_lines_ = true;
  for (size_t start = 0; start < text.size();) {
    const size_t end = std::min(text.find('\n', start), text.size());
    if (!skips_empty || !without_return(text.substr(start, end - start)).empty()) {
      units.starts_.push_back(start);
    }
    start = end + 1;
  }
  units.starts_.shrink_to_fit();
  return units;
}

TextUnits TextUnits::documents(std::string_view text, const std::string& separator) {
  TextUnits units;
  units.text_ = text;
  units.separator_ = separator;
  for (size_t start = 0; start < text.size();) {
    const size_t end = std::min(text.find(separator, start), text.size());
    if (end > start) units.starts_.push_back(start);
    start = end + separator.size();
  }
  units.starts_.shrink_to_fit();
  return units;
}

std::string_view TextUnits::operator[](int64_t index) const {
  const size_t begin = start(index);
  if (is_of_lines_) return line_at(text_, begin);
  return text_.substr(begin, text_.find(separator_, begin) - begin);
}

size_t TextPieces::end_of_piece(size_t from) const {
  if (!separator_.empty()) {
    const size_t found = text_.find(separator_, from);
    return found == std::string_view::npos ? text_.size() : found + separator_.size();
  }
  const std::string_view piece = text_.substr(from, kMegabyte);
  const size_t line_end = piece.find('\n');
  if (line_end != std::string_view::npos) {
    size_t end = line_end;
    while (end < piece.size() && (piece[end] == '\n' || piece[end] == '\r')) ++end;
    return from + end;
  }
  if (from + piece.size() == text_.size()) return text_.size();
  const size_t space = piece.rfind(' ');
  const bool has_space = space != std::string_view::npos && space > 0;
  return from + (has_space ? space : std::max<size_t>(cut_position(piece, piece.size() - 4), 1));
}

std::vector<size_t> TextPieces::block_ends() const {
  std::vector<size_t> ends;
  for (size_t begin = 0; begin < text_.size();) {
    size_t end = end_of_piece(begin);
    while (end < text_.size() && end - begin < kMegabyte) end = end_of_piece(end);
    ends.push_back(end);
    begin = end;
  }
  return ends;
}

}  // namespace stepop
