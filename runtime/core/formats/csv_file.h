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
  std::vector<std::string> header;  ///< The columns' names, without duplicates.
  std::unordered_map<std::string, size_t, KeyHash> places;  ///< The columns' positions, by name.
  std::vector<std::vector<std::string>> columns;            ///< columns[c][row]
  std::vector<int64_t> lines;  ///< The line on which each row begins, from 1.

  /// `table.csv:12: column "x"`, the beginning of a message.
  std::string where(size_t column, size_t row) const;
};

/// Reads a CSV file in the format of RFC 4180: the first row names the columns; a cell with a
/// separator, a quote or a line end is quoted, and a quote within it is doubled. Plain or gzip;
/// lines end in LF or CRLF; empty lines and a byte order mark are skipped; cells keep their spaces.
///
/// Throws Error with file and line for a row of another length, wrong quotes, a repeated name
/// (except the empty name) and a file without a header. The default `separator` is the comma; then
/// a file with another separator is an Error that names the separator.
CsvTable read_csv(const std::string& path, std::optional<char> separator = {});

/// A text as one cell of a comma-separated CSV file, with quotes where RFC 4180 requires them.
std::string csv_cell(const std::string& text);

}  // namespace stepop
