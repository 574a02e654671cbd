#pragma once

#include <string>
#include <vector>

namespace stepop {

/// Stands in a cell for a value that is not known.
inline constexpr const char* kNoValue = "-";

/// A table for people: columns two spaces apart, each as wide as its widest cell.
class TextTable {
 public:
  struct Column {
    std::string title;
    bool is_right = false;  ///< Numbers stand to the right.
  };

  explicit TextTable(std::vector<Column> columns);

  /// One row, with a cell for each column.
  void add(std::vector<std::string> cells);

  /// The columns it takes at its widest line.
  size_t width() const;

  /// The same in tables of at most `most` columns of the terminal, each with some of the columns:
  /// the first `repeated` ones, and as many others as there is room for, one at least.
  std::vector<TextTable> parts(size_t most, size_t repeated) const;

  /// Lines that end with newlines, the titles first (none when all are empty). Control characters
  /// of a cell become `?`.
  std::string text() const;

 private:
  std::vector<size_t> widths() const;

  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

/// What a table calls its `i`-th thing whose name is too long for it: `a`, `b`, ... `z`, `27`, ...
std::string letter_of(size_t i);

}  // namespace stepop
