#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "runtime/core/base/key_hash.h"

namespace stepop {

/// The cells of a CSV file as text, column by column.
struct CsvTable {
  std::string path;
  std::vector<std::string> header;  ///< The columns' names; none is there twice.
  std::unordered_map<std::string, size_t, KeyHash> places;  ///< Of columns, by their names.
  std::vector<std::vector<std::string>> columns;            ///< columns[c][row]
  std::vector<int64_t> lines;  ///< Where each row begins, counted from 1.

  /// `table.csv:12: column "x"`, to begin a message with.
  std::string where(size_t column, size_t row) const;
};

/// Reads a CSV file as RFC 4180 has it: the first row names the columns; a cell that holds a
/// separator, a quote or the end of a line is quoted, with a quote doubled. Plain or gzip; lines
/// end in LF or CRLF; empty lines and a byte order mark are skipped; cells keep their spaces.
///
/// Throws Error with file and line for a row of another length, for wrong quotes, for a name that
/// is there twice (the empty name may be) and for a file without a header. Without a `separator` it
/// is the comma, and a file that has another one is an Error that names it.
CsvTable read_csv(const std::string& path, std::optional<char> separator = {});

/// A text as one cell of a CSV file that is separated by commas: in quotes where RFC 4180 wants
/// them.
std::string csv_cell(const std::string& text);

}  // namespace stepop
