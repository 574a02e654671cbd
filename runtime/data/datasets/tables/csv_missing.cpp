#include "runtime/data/datasets/tables/csv_missing.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string_view>
#include <utility>

#include "runtime/core/base/number_text.h"
#include "runtime/core/base/text.h"
#include "runtime/data/datasets/tables/csv_numbers.h"

namespace stepop {
namespace {

using Action = MissingRule::Action;

bool is_number(CsvType type) { return type == CsvType::kInt || type == CsvType::kFloat; }

MissingRule rule_of(const Value& value, const Config& params, const std::string& place,
                    bool is_named) {
  MissingRule rule{.action = Action::kFill, .fill = {}, .place = place, .is_named = is_named};
  const std::string word = value.is_text() ? value.as_text() : "";
  if (word == "error") {
    rule.action = Action::kError;
  } else if (word == "drop") {
    rule.action = Action::kDrop;
  } else if (word == "mean") {
    rule.action = Action::kMean;
  } else if (word == "median") {
    rule.action = Action::kMedian;
  } else if (word == "nan" || (value.is_float() && std::isnan(value.as_float()))) {
    rule.action = Action::kNan;
  } else if (is_named && !word.empty()) {
    rule.fill = word;
  } else if (is_named && value.is_int()) {
    rule.fill = std::to_string(value.as_int());
  } else if (is_named && value.is_float()) {
    rule.fill = fmt::format("{}", value.as_float());
  } else {
    throw params.error(
        place, fmt::format("expected error, drop, nan, mean, median or {}, found {}",
                           is_named ? "the value to read instead"
                                    : "a map from columns to the values to read instead, such as "
                                      "{age: 0}",
                           value.describe()));
  }
  return rule;
}

double median_of(std::vector<double> values) {
  const size_t middle = values.size() / 2;
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(middle),
                   values.end());
  const double upper = values[middle];
  if (values.size() % 2 == 1) return upper;
  const double lower =
      *std::max_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(middle));
  return lower + (upper - lower) / 2;
}

double mean_of(const std::vector<double>& values) {
  double mean = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    mean += (values[i] - mean) / static_cast<double>(i + 1);
  }
  return mean;
}

}  // namespace

MissingValues::MissingValues(const CsvTable& table, const Config& params)
    : table_(table), params_(params), is_dropped_(table.lines.size(), false) {
  if (params.has("missing")) {
    const auto value = params.get<Value>("missing");
    if (value.is_map()) {
      for (const auto& [name, item] : value.as_map()) {
        const std::string place = join_path("missing", name);
        check_csv_column(table, name, params, place);
        rules_.emplace(name, rule_of(item, params, place, true));
      }
    } else {
      rule_ = rule_of(value, params, "missing", false);
    }
  }
  const auto options = read_csv_options(table, params);
  for (size_t c = 0; c < table.header.size(); ++c) add(c, options);
}

void MissingValues::add(size_t place, const std::map<std::string, CsvColumnOptions>& options) {
  const std::string& name = table_.header[place];
  const auto option = options.find(name);
  if (name.empty() && option == options.end()) return;  // the column is not read
  const auto named = rules_.find(name);
  Column column{.place = place,
                .rule = named != rules_.end() ? named->second : rule_,
                .type = CsvType::kText,
                .has_type = option != options.end() && option->second.type.has_value(),
                .gaps = {}};
  column.type = column.has_type ? *option->second.type : type_of_present(place);
  MissingRule& rule = column.rule;
  // New rows may all lack a column that the training data has, such as a target.
  if (rule.is_fitted() && !column.has_type &&
      std::all_of(table_.columns[place].begin(), table_.columns[place].end(), is_missing_number)) {
    column.type = CsvType::kFloat;
  }
  if (column.type == CsvType::kSkip || (column.type == CsvType::kText && !rule.is_named)) return;
  if (rule.is_fitted() && column.type != CsvType::kFloat &&
      (column.type != CsvType::kInt || column.has_type)) {
    if (rule.is_named) {
      throw params_.error(
          rule.place,
          fmt::format(
              "the column \"{}\" is not one of floats, which have a {}{}", name,
              rule.action == Action::kMean ? "mean" : "median",
              column.type == CsvType::kInt ? fmt::format(": columns: {{{}: float}}", name) : ""));
    }
    rule.action = Action::kError;  // a rule for all columns does not fit this column
  }
  const auto& cells = table_.columns[place];
  for (size_t row = 0; row < cells.size(); ++row) {
    const bool is_gap = is_number(column.type) ? is_missing_number(cells[row]) : cells[row].empty();
    if (is_gap) column.gaps.push_back(row);
  }
  if (rule.action == Action::kDrop) {
    for (const size_t row : column.gaps) is_dropped_[row] = true;
  }
  if (rule.action == Action::kFill && !column.gaps.empty()) check_fill(column);
  if (rule.action == Action::kNan && !column.gaps.empty() && column.type != CsvType::kFloat &&
      (column.type != CsvType::kInt || column.has_type)) {
    if (rule.is_named || is_number(column.type)) {
      throw params_.error(
          rule.place,
          fmt::format("the column \"{}\" has missing values, and only floats can be NaN: "
                      "columns: {{{}: float}}",
                      name, name));
    }
    rule.action = Action::kError;  // a class or an image is not a number
  }
  if (!column.gaps.empty() || rule.is_filled()) columns_.push_back(std::move(column));
}

void MissingValues::check() const {
  std::vector<std::string> left;
  std::string first;
  for (const Column& column : columns_) {
    if (column.rule.action != Action::kError || column.gaps.empty()) continue;
    if (left.empty()) first = name_of(column);
    left.push_back(fmt::format("{} in {} of {} rows (first in line {})", name_of(column),
                               with_thousands(static_cast<int64_t>(column.gaps.size())),
                               with_thousands(static_cast<int64_t>(table_.lines.size())),
                               table_.lines[column.gaps[0]]));
  }
  if (!left.empty()) {
    throw Error(fmt::format(
        "{}: {} missing values (empty, NA, NaN, null or None): {}. In the dataset's config, "
        "\"missing: drop\" leaves out their rows, \"missing: nan\" reads numbers as NaN, "
        "\"missing: {{{}: mean}}\" reads the mean of the others instead, \"missing: {{{}: 0}}\" "
        "another value, and \"columns: {{{}: skip}}\" leaves out the column",
        table_.path, left.size() == 1 ? "a column has" : "columns have", list_text(left), first,
        first, first));
  }
  if (!is_dropped_.empty() &&
      std::all_of(is_dropped_.begin(), is_dropped_.end(), std::identity())) {
    throw Error(table_.path + ": each row lacks a value, so \"missing: drop\" leaves none");
  }
}

std::vector<std::string> MissingValues::fitted_columns() const {
  std::vector<std::string> names;
  for (const Column& column : columns_) {
    if (column.rule.is_fitted()) names.push_back(name_of(column));
  }
  return names;
}

std::map<std::string, double> MissingValues::fit(const std::vector<bool>& is_taken) const {
  std::map<std::string, double> fitted;
  for (const Column& column : columns_) {
    if (!column.rule.is_fitted()) continue;
    const auto& cells = table_.columns[column.place];
    std::vector<double> values;
    for (size_t row = 0; row < cells.size(); ++row) {
      if (!is_taken[row] || is_missing_number(cells[row])) continue;
      double value = 0;
      // A cell that is not a number is reported when the column is read.
      if (parse_csv_number(cells[row], value) == std::errc()) values.push_back(value);
    }
    const bool is_mean = column.rule.action == Action::kMean;
    const char* what = is_mean ? "mean" : "median";
    if (values.empty()) {
      throw Error(fmt::format("{}: the column \"{}\" has no value to take the {} of", table_.path,
                              name_of(column), what));
    }
    const double value = is_mean ? mean_of(values) : median_of(std::move(values));
    if (!std::isfinite(value)) {
      throw Error(fmt::format("{}: the {} of the column \"{}\" is {}", table_.path, what,
                              name_of(column), value));
    }
    fitted.emplace(name_of(column), value);
  }
  return fitted;
}

std::string MissingValues::constant_of(const std::string& name) const {
  const auto rule = rules_.find(name);
  return rule != rules_.end() && rule->second.action == Action::kFill ? rule->second.fill : "";
}

void MissingValues::fill(CsvTable& table, const std::map<std::string, double>& fitted) const {
  for (const Column& column : columns_) {
    std::string text = column.rule.fill;
    if (column.rule.action == Action::kNan) text = "nan";
    if (column.rule.is_fitted()) text = fmt::format("{}", fitted.at(name_of(column)));
    if (text.empty()) continue;
    for (const size_t row : column.gaps) table.columns[column.place][row] = text;
  }
}

std::vector<std::pair<std::string, std::vector<bool>>> MissingValues::masks() const {
  std::vector<std::pair<std::string, std::vector<bool>>> masks;
  for (const Column& column : columns_) {
    if (!column.rule.is_filled()) continue;
    std::vector<bool> is_missing(is_dropped_.size(), false);
    for (const size_t row : column.gaps) is_missing[row] = true;
    masks.emplace_back(name_of(column), std::move(is_missing));
  }
  return masks;
}

std::vector<std::string> MissingValues::fill_texts(
    const std::map<std::string, double>& fitted) const {
  std::vector<std::string> texts;
  for (const Column& column : columns_) {
    const auto count = static_cast<int64_t>(column.gaps.size());
    if (count == 0) continue;
    std::string by;
    if (column.rule.is_fitted()) {
      by = fmt::format("{:.6g}, the {} in training", fitted.at(name_of(column)),
                       column.rule.action == Action::kMean ? "mean" : "median");
    } else if (column.rule.action == Action::kFill) {
      by = column.rule.fill;
    } else if (column.rule.action == Action::kNan) {
      by = "NaN";
    } else {
      continue;
    }
    texts.push_back(fmt::format("{} in {} by {}", name_of(column), counted(count, "row"), by));
  }
  return texts;
}

/// The type that fits all present cells; text when there are none.
CsvType MissingValues::type_of_present(size_t column) const {
  const auto& cells = table_.columns[column];
  const CsvType type = infer_csv_type(cells);
  if (type != CsvType::kText) return type;
  std::vector<std::string> present;
  for (const auto& cell : cells) {
    if (!is_missing_number(cell)) present.push_back(cell);
  }
  const bool has_any = !present.empty() && present.size() < cells.size();
  return has_any ? infer_csv_type(present) : type;
}

void MissingValues::check_fill(const Column& column) const {
  if (!is_number(column.type)) return;
  const CsvType found = infer_csv_type({column.rule.fill});
  const bool must_be_whole = column.type == CsvType::kInt && column.has_type;
  if (found == CsvType::kInt || (found == CsvType::kFloat && !must_be_whole)) return;
  throw params_.error(column.rule.place,
                      fmt::format("expected a {}, as the column holds, found \"{}\"",
                                  must_be_whole ? "whole number" : "number", column.rule.fill));
}

}  // namespace stepop
