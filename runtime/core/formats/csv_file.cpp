#include "runtime/core/formats/csv_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "runtime/core/base/error.h"
#include "runtime/core/base/number_text.h"
#include "runtime/core/formats/gzip_file.h"

namespace stepop {
namespace {

/// Reads the text row by row.
class CsvParser {
 public:
  CsvParser(std::string_view text, const std::string& path, char separator)
      : text_(text), path_(path), separator_(separator) {
    if (text_.starts_with("\xef\xbb\xbf")) at_ = 3;
  }

  /// The next row that is not empty; false at the end.
  bool next(std::vector<std::string>& cells) {
    while (skip_line_end()) continue;
    if (at_ == text_.size()) return false;
    cells.clear();
    row_line_ = line_;
    cells.push_back(cell());
    while (at_ < text_.size() && text_[at_] == separator_) {
      ++at_;
      cells.push_back(cell());
    }
    skip_line_end();
    return true;
  }

  /// The line on which the last row begins.
  int64_t line() const { return row_line_; }

 private:
  [[noreturn]] void fail(int64_t line, const std::string& message) const {
    throw Error(fmt::format("{}:{}: {}", path_, line, message));
  }

  bool is_line_end() const {
    return at_ < text_.size() &&
           (text_[at_] == '\n' || (text_[at_] == '\r' && text_.substr(at_).starts_with("\r\n")));
  }

  bool skip_line_end() {
    if (!is_line_end()) return false;
    at_ += text_[at_] == '\r' ? 2 : 1;
    ++line_;
    return true;
  }

  std::string cell() {
    if (at_ < text_.size() && text_[at_] == '"') return quoted_cell();
    const size_t begin = at_;
    while (at_ < text_.size() && text_[at_] != separator_ && !is_line_end()) {
      if (text_[at_] == '"') {
        fail(line_,
             "a quote inside a cell that is not quoted; write the whole cell in quotes, and "
             "\"\" for a quote in it");
      }
      ++at_;
    }
    return std::string(text_.substr(begin, at_ - begin));
  }

  std::string quoted_cell() {
    const int64_t first_line = line_;
    std::string content;
    while (true) {
      const size_t begin = ++at_;  // after a quote
      at_ = text_.find('"', begin);
      if (at_ == std::string_view::npos) fail(first_line, "a quoted cell begins and never ends");
      const std::string_view part = text_.substr(begin, at_ - begin);
      content += part;
      line_ += std::count(part.begin(), part.end(), '\n');
      ++at_;
      if (at_ == text_.size() || text_[at_] != '"') break;
      content += '"';
    }
    if (at_ < text_.size() && text_[at_] != separator_ && !is_line_end()) {
      fail(line_, fmt::format("\"{}\" follows the quote that ends a cell; a quote inside a cell is "
                              "written \"\"",
                              text_[at_]));
    }
    return content;
  }

  std::string_view text_;
  const std::string& path_;
  char separator_;
  size_t at_ = 0;
  int64_t line_ = 1;
  int64_t row_line_ = 1;
};

/// Throws Error if the name of a single column looks like several names.
void check_separator(const std::vector<std::string>& header, const std::string& path,
                     int64_t line) {
  if (header.size() > 1) return;
  const size_t at = header.front().find_first_of(";\t|");
  if (at == std::string::npos) return;
  const char found = header.front()[at];
  const std::string shown = found == '\t' ? "\\t" : std::string(1, found);
  throw Error(fmt::format(
      "{0}:{1}: the header is one column whose name has \"{2}\": if that separates columns, set "
      "separator: \"{2}\"; separator: \",\" says that it does not",
      path, line, shown));
}

}  // namespace

std::string CsvTable::where(size_t column, size_t row) const {
  return fmt::format("{}:{}: column \"{}\"", path, lines[row], header[column]);
}

std::string csv_cell(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

CsvTable read_csv(const std::string& path, std::optional<char> separator) {
  const std::string text = read_plain_or_gzip(path);
  CsvParser parser(text, path, separator.value_or(','));
  CsvTable table{.path = path, .header = {}, .places = {}, .columns = {}, .lines = {}};
  if (!parser.next(table.header)) {
    throw Error(
        fmt::format("{}: expected a line with the names of the columns, the file is empty", path));
  }
  if (!separator) check_separator(table.header, path, parser.line());
  for (size_t c = 0; c < table.header.size(); ++c) {
    const std::string& name = table.header[c];
    if (!table.places.emplace(name, c).second && !name.empty()) {
      throw Error(fmt::format("{}:{}: two columns are named \"{}\"", path, parser.line(), name));
    }
  }
  table.columns.resize(table.header.size());
  std::vector<std::string> cells;
  while (parser.next(cells)) {
    if (cells.size() != table.header.size()) {
      throw Error(fmt::format("{}:{}: {}, the header has {}", path, parser.line(),
                              counted(cells.size(), "cell"),
                              counted(table.header.size(), "column")));
    }
    for (size_t c = 0; c < cells.size(); ++c) table.columns[c].push_back(std::move(cells[c]));
    table.lines.push_back(parser.line());
  }
  return table;
}

}  // namespace stepop
