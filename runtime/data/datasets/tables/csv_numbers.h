#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

#include "runtime/core/formats/csv_file.h"

namespace stepop {

/// Parses all of `cell` except spaces around it; a leading plus is allowed.
std::errc parse_csv_number(std::string_view cell, int64_t& number);
std::errc parse_csv_number(std::string_view cell, double& number);

/// Whether a cell among numbers stands for "not known": empty, NA, N/A, NaN, null or None.
bool is_missing_number(std::string_view cell);

/// A number with a decimal comma, and perhaps points between thousands, as C writes it: 1234.56 for
/// 1.234,56. Nothing for anything else.
std::optional<std::string> from_decimal_comma(std::string_view cell);

/// For a cell that is no number: what it may be, and what helps; begins with "; ", or is empty.
std::string number_advice(const std::string& cell, bool has_decimal_commas);

/// A warning for a column that is read as text although its cells look like numbers in another
/// style, or nearly all are numbers, with the first cell that is none. Else empty.
std::string note_on_text(const CsvTable& table, size_t column, bool has_decimal_commas);

/// A warning for a column of numbers with a cell such as 00501, which is 501 as a number.
std::string note_on_leading_zeros(const CsvTable& table, size_t column);

}  // namespace stepop
