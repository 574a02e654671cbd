#include "runtime/data/datasets/tables/csv_numbers.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "runtime/core/base/float32.h"
#include "runtime/core/base/number_text.h"
#include "runtime/data/notice.h"

namespace stepop {
namespace {

std::string_view without_spaces(std::string_view cell) {
  while (cell.starts_with(' ')) cell.remove_prefix(1);
  while (cell.ends_with(' ')) cell.remove_suffix(1);
  return cell;
}

template <class T>
std::errc parse(std::string_view cell, T& number) {
  cell = without_spaces(cell);
  if (cell.starts_with('+') && !cell.starts_with("+-")) cell.remove_prefix(1);
  const auto [end, status] = std::from_chars(cell.data(), cell.data() + cell.size(), number);
  return end == cell.data() + cell.size() ? status : std::errc::invalid_argument;
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

size_t count_digits(std::string_view text) {
  return static_cast<size_t>(std::ranges::find_if_not(text, is_digit) - text.begin());
}

/// Takes digits from the beginning of `text`, in groups of three behind the first when `group` is
/// between them. Empty when there are none.
std::string take_whole(std::string_view& text, std::string_view group) {
  std::string digits;
  size_t count = count_digits(text);
  bool goes_on = count > 0;
  while (goes_on) {
    digits += text.substr(0, count);
    text.remove_prefix(count);
    const bool is_short = digits.size() <= 3 || digits.size() > count;
    count = text.starts_with(group) ? count_digits(text.substr(group.size())) : 0;
    goes_on = is_short && count == 3;
    if (goes_on) text.remove_prefix(group.size());
  }
  return digits;
}

/// A number with this sign between thousands and this decimal sign, as C writes it: 1.234,56 is
/// 1234.56. Nothing for anything else.
std::optional<std::string> number_in_style(std::string_view cell, std::string_view group,
                                           char decimal) {
  std::string_view text = without_spaces(cell);
  std::string plain;
  if (text.starts_with('-') || text.starts_with('+')) {
    plain = text.starts_with('-') ? "-" : "";
    text.remove_prefix(1);
  }
  const std::string whole = take_whole(text, group);
  std::string_view part;
  if (text.starts_with(decimal)) {
    part = text.substr(1, count_digits(text.substr(1)));
    text.remove_prefix(1 + part.size());
  }
  if (whole.empty() && part.empty()) return std::nullopt;
  plain += whole.empty() ? "0" : whole;
  if (!part.empty()) plain += fmt::format(".{}", part);
  if (text.starts_with('e') || text.starts_with('E')) {
    const size_t sign = text.size() > 1 && (text[1] == '-' || text[1] == '+') ? 1 : 0;
    const size_t digits = count_digits(text.substr(1 + sign));
    if (digits == 0) return std::nullopt;
    plain += text.substr(0, 1 + sign + digits);
    text.remove_prefix(1 + sign + digits);
  }
  if (!text.empty()) return std::nullopt;
  return plain;
}

bool is_plain(std::string_view cell) {
  double number = 0;
  if (parse(cell, number) == std::errc()) return !std::isfinite(number) || fits_float32(number);
  cell = without_spaces(cell);
  return !cell.empty() && std::ranges::all_of(cell, is_digit);  // an identifier
}

bool is_too_large(std::string_view cell) {
  double number = 0;
  const std::errc status = parse(cell, number);
  return status == std::errc::result_out_of_range ||
         (status == std::errc() && std::isfinite(number) && !fits_float32(number));
}

/// Whether commas, points, spaces or apostrophes are between thousands.
bool has_groups(std::string_view cell) {
  for (const std::string_view group : {",", " ", "'", "\u2019", "\u00a0", "\u202f"}) {
    if (cell.find(group) == std::string_view::npos) continue;
    if (number_in_style(cell, group, '.')) return true;
    if (group != "," && number_in_style(cell, group, ',')) return true;
  }
  return false;
}

/// The cell without a percent sign or a sign of a currency; nothing when it has none.
std::optional<std::string_view> without_unit(std::string_view cell) {
  cell = without_spaces(cell);
  for (const std::string_view unit : {"%", "$", "€", "£", "¥"}) {
    if (cell.ends_with(unit)) return without_spaces(cell.substr(0, cell.size() - unit.size()));
    if (cell.starts_with(unit)) return without_spaces(cell.substr(unit.size()));
    if (cell.size() > 1 && cell.starts_with('-') && cell.substr(1).starts_with(unit)) {
      return without_spaces(cell.substr(1 + unit.size()));
    }
  }
  return std::nullopt;
}

/// Why a number in the notation of programs or of accounts is no number here; empty for any other
/// cell.
std::string notation_advice(std::string_view cell) {
  cell = without_spaces(cell);
  const bool is_in_brackets = cell.size() > 2 && cell.front() == '(' && cell.back() == ')';
  if (is_in_brackets && number_in_style(cell.substr(1, cell.size() - 2), ",", '.')) {
    return "; where brackets mean less than 0, write a minus in the file";
  }
  for (const std::string_view minus : {"\u2212", "\u2013"}) {
    if (cell.starts_with(minus) && number_in_style(cell.substr(minus.size()), ",", '.')) {
      return "; its minus is another character than -: replace it in the file";
    }
  }
  if (cell.find('_') != std::string_view::npos && number_in_style(cell, "_", '.')) {
    return "; take what is between thousands out of the file";
  }
  const bool has_base = cell.size() > 2 && cell[0] == '0' &&
                        (cell[1] == 'x' || cell[1] == 'X' || cell[1] == 'o' || cell[1] == 'b');
  if (has_base && cell.find_first_not_of("0123456789abcdefABCDEF", 2) == std::string_view::npos) {
    return "; numbers are read with ten as their base: write them so in the file";
  }
  return "";
}

bool is_like_number(std::string_view cell) {
  const auto number = without_unit(cell).value_or(cell);
  return is_plain(number) || is_too_large(number) || from_decimal_comma(number) ||
         has_groups(number) || !notation_advice(cell).empty();
}

/// `?`, `-`, `#N/A`: cells that stand for no value in some tables.
bool is_placeholder(std::string_view cell) {
  const auto is_word = [](char c) {
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c & '\x80') != 0;
  };
  return cell.starts_with('#') || std::ranges::none_of(cell, is_word);
}

}  // namespace

std::optional<std::string> from_decimal_comma(std::string_view cell) {
  return number_in_style(cell, ".", ',');
}

std::errc parse_csv_number(std::string_view cell, int64_t& number) { return parse(cell, number); }
std::errc parse_csv_number(std::string_view cell, double& number) { return parse(cell, number); }

bool is_missing_number(std::string_view cell) {
  cell = without_spaces(cell);
  if (cell.size() > 4) return false;
  std::string small(cell);
  for (char& c : small) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return small.empty() || small == "na" || small == "n/a" || small == "nan" || small == "null" ||
         small == "none";
}

std::string number_advice(const std::string& cell, bool has_decimal_commas) {
  const auto number = without_unit(cell);
  if (number && (is_plain(*number) || from_decimal_comma(*number) || has_groups(*number))) {
    return "; numbers are read without % and signs of currencies: take them out of the file";
  }
  if (is_too_large(cell)) return "; float32 has numbers up to 3.4028235e38";
  const bool has_comma = !has_decimal_commas && from_decimal_comma(cell);
  const bool are_thousands = has_groups(cell);
  if (has_comma && are_thousands) {
    return "; decimal: \",\" reads it with a decimal comma; if the comma is between thousands, "
           "take "
           "it out of the file";
  }
  if (has_comma) return "; decimal: \",\" reads decimal commas";
  if (are_thousands) return "; take what is between thousands out of the file";
  return notation_advice(cell);
}

std::string note_on_text(const CsvTable& table, size_t column, bool has_decimal_commas) {
  constexpr double kNearlyAll = 0.9;
  const auto& cells = table.columns[column];
  size_t numbers = 0;
  size_t others = 0;
  std::optional<size_t> first;
  std::optional<size_t> placeholder;
  for (size_t row = 0; row < cells.size(); ++row) {
    const std::string_view cell = cells[row];
    if (is_missing_number(cell)) continue;
    const bool is_number =
        has_decimal_commas ? from_decimal_comma(cell).has_value() : is_plain(cell);
    if (!is_number && is_placeholder(cell)) {
      if (!placeholder) placeholder = row;
      continue;
    }
    ++(is_number || is_like_number(cell) ? numbers : others);
    if (!is_number && !first) first = row;
  }
  if (!first) first = placeholder;
  if (numbers == 0 || !first) return {};
  if (static_cast<double>(numbers) < kNearlyAll * static_cast<double>(numbers + others)) return {};
  std::string advice = number_advice(cells[*first], has_decimal_commas);
  if (advice.empty()) {
    advice = "; an empty cell stands for a missing number, and \"missing\" says what becomes of it";
  }
  return fmt::format(
      "{}{}: is read as text, as \"{}\" is no number, which {}{}; columns: {{\"{}\": text}} says "
      "that it is a text",
      kWarning, table.where(column, *first), cells[*first],
      others == 0
          ? "the cells look like"
          : fmt::format("{} of {} cells look like", with_thousands(static_cast<int64_t>(numbers)),
                        with_thousands(static_cast<int64_t>(cells.size()))),
      advice, table.header[column]);
}

std::string note_on_leading_zeros(const CsvTable& table, size_t column) {
  const auto& cells = table.columns[column];
  for (size_t row = 0; row < cells.size(); ++row) {
    std::string_view cell = without_spaces(cells[row]);
    if (cell.starts_with('-') || cell.starts_with('+')) cell.remove_prefix(1);
    if (cell.size() < 2 || cell[0] != '0' || !is_digit(cell[1])) continue;
    double number = 0;
    if (parse(cells[row], number) != std::errc()) continue;
    return fmt::format(
        "{0}{1}: \"{2}\" is read as the number {3}; columns: {{\"{4}\": text}} keeps the zeros, "
        "and {{\"{4}\": {5}}} says that it is a number",
        kWarning, table.where(column, row), cells[row], number, table.header[column],
        cell.find_first_not_of("0123456789") == std::string_view::npos ? "int" : "float");
  }
  return {};
}

}  // namespace stepop
