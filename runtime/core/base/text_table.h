#pragma once

#include <string>
#include <vector>

namespace stepop {

/// The text in a cell for an unknown value.
inline constexpr const char* kNoValue = "-";

/// A table in plain text: columns two spaces apart, each as wide as its widest cell.
class TextTable {
 public:
  struct Column {
    std::string title;
    bool is_right = false;  ///< For numbers.
  };

  explicit TextTable(std::vector<Column> columns);

  /// One row, with a cell for each column.
  void add(std::vector<std::string> cells);

  /// The width of the widest line, in columns of the terminal.
  size_t width() const;

  /// Splits the table into tables of at most `most` columns of the terminal. Each has the first
  /// `repeated` columns and as many other columns as fit, at least one.
  std::vector<TextTable> parts(size_t most, size_t repeated) const;

  /// The lines, each with a newline, titles first (no titles when all are empty). Control
  /// characters in a cell become `?`.
  std::string text() const;

 private:
  std::vector<size_t> widths() const;

  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

/// A short name for the `i`-th item of a table, for a name that is too long: `a`, `b`, ... `z`,
/// `27`, ...
std::string letter_of(size_t i);

}  // namespace stepop
