#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/base/number_text.h"
#include "runtime/base/text.h"
#include "runtime/data/dataset.h"
#include "runtime/data/datasets/csv_columns.h"
#include "runtime/data/datasets/image_reader.h"
#include "runtime/formats/csv_file.h"

namespace stepop {
namespace {

char get_separator(const Config& params) {
  const auto separator = params.get("separator", ",");
  if (separator.size() != 1 || separator == "\"" || separator == "\n" || separator == "\r") {
    throw params.error("separator", "expected one character, as \",\" or \"\\t\"");
  }
  return separator[0];
}

bool is_number(CsvType type) { return type == CsvType::kInt || type == CsvType::kFloat; }

/// Whether a cell among numbers stands for "not known".
bool is_missing_number(std::string_view cell) {
  while (cell.starts_with(' ')) cell.remove_prefix(1);
  while (cell.ends_with(' ')) cell.remove_suffix(1);
  if (cell.size() > 4) return false;
  std::string small(cell);
  for (char& c : small) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return small.empty() || small == "na" || small == "n/a" || small == "nan" || small == "null" ||
         small == "none";
}

/// What becomes of the missing values of a column.
struct MissingRule {
  enum class Action { kError, kDrop, kNan, kFill };

  Action action = Action::kError;
  std::string fill;   ///< Of kFill: the cell to read instead.
  std::string place;  ///< In the config.
  bool is_named;      ///< The config names the column, rather than all columns.
};

MissingRule rule_of(const Value& value, const Config& params, const std::string& place,
                    bool is_named) {
  using Action = MissingRule::Action;
  MissingRule rule{.action = Action::kFill, .fill = {}, .place = place, .is_named = is_named};
  if (value.is_text() && value.as_text() == "error") {
    rule.action = Action::kError;
  } else if (value.is_text() && value.as_text() == "drop") {
    rule.action = Action::kDrop;
  } else if ((value.is_text() && value.as_text() == "nan") ||
             (value.is_float() && std::isnan(value.as_float()))) {
    rule.action = Action::kNan;
  } else if (is_named && value.is_text() && !value.as_text().empty()) {
    rule.fill = value.as_text();
  } else if (is_named && value.is_int()) {
    rule.fill = std::to_string(value.as_int());
  } else if (is_named && value.is_float()) {
    rule.fill = fmt::format("{}", value.as_float());
  } else {
    throw params.error(
        place, fmt::format("expected error, drop, nan or {}, found {}",
                           is_named ? "the value to read instead"
                                    : "a map from columns to the values to read instead, such as "
                                      "{age: 0}",
                           value.describe()));
  }
  return rule;
}

/// Applies the parameter `missing` to the cells of a table.
class MissingValues {
 public:
  MissingValues(CsvTable& table, const Config& params)
      : table_(table), params_(params), options_(read_csv_options(table, params)) {
    if (!params.has("missing")) return;
    const auto value = params.get<Value>("missing");
    if (!value.is_map()) {
      rule_ = rule_of(value, params, "missing", false);
      return;
    }
    for (const auto& [name, item] : value.as_map()) {
      const std::string place = join_path("missing", name);
      check_csv_column(table, name, params, place);
      rules_.emplace(name, rule_of(item, params, place, true));
    }
  }

  /// Throws Error with the columns, how many values they miss, and what helps.
  void apply() {
    const size_t rows = table_.lines.size();
    std::vector<bool> is_dropped(rows, false);
    for (size_t c = 0; c < table_.header.size(); ++c) apply_to(c, is_dropped);
    if (!left_.empty()) {
      throw Error(fmt::format(
          "{}: {} missing values (empty, NA, NaN, null or None): {}. In the dataset's config, "
          "\"missing: drop\" leaves out their rows, \"missing: nan\" reads numbers as NaN, "
          "\"missing: {{{}: 0}}\" reads another value instead, and \"columns: {{{}: skip}}\" "
          "leaves out the column",
          table_.path, left_.size() == 1 ? "a column has" : "columns have", list_text(left_),
          first_left_, first_left_));
    }
    const auto dropped = std::count(is_dropped.begin(), is_dropped.end(), true);
    if (dropped == 0) return;
    if (static_cast<size_t>(dropped) == rows) {
      throw Error(table_.path + ": each row misses a value, so that \"missing: drop\" leaves none");
    }
    const auto keep_rest = [&](auto& cells) {
      size_t kept = 0;
      for (size_t row = 0; row < rows; ++row) {
        if (is_dropped[row]) continue;
        if (kept != row) cells[kept] = std::move(cells[row]);
        ++kept;
      }
      cells.resize(kept);
    };
    keep_rest(table_.lines);
    for (auto& cells : table_.columns) keep_rest(cells);
  }

 private:
  void apply_to(size_t column, std::vector<bool>& is_dropped) {
    const std::string& name = table_.header[column];
    const auto option = options_.find(name);
    if (name.empty() && option == options_.end()) return;  // it is not read
    const auto named = rules_.find(name);
    const MissingRule& rule = named != rules_.end() ? named->second : rule_;
    const bool has_type = option != options_.end() && option->second.type.has_value();
    const CsvType type = has_type ? *option->second.type : type_of_present(column);
    if (type == CsvType::kSkip || (type == CsvType::kText && !rule.is_named)) return;

    auto& cells = table_.columns[column];
    std::vector<size_t> gaps;
    for (size_t row = 0; row < cells.size(); ++row) {
      if (is_number(type) ? is_missing_number(cells[row]) : cells[row].empty()) gaps.push_back(row);
    }
    if (gaps.empty()) return;
    switch (rule.action) {
      case MissingRule::Action::kDrop:
        for (const size_t row : gaps) is_dropped[row] = true;
        return;
      case MissingRule::Action::kFill:
        check_fill(rule, type, has_type);
        for (const size_t row : gaps) cells[row] = rule.fill;
        return;
      case MissingRule::Action::kNan:
        if (type == CsvType::kFloat || (type == CsvType::kInt && !has_type)) {
          for (const size_t row : gaps) cells[row] = "nan";
          return;
        }
        if (!rule.is_named && !is_number(type)) break;  // a class or an image: not a number
        throw params_.error(
            rule.place,
            fmt::format("the column \"{}\" has missing values, and only floats can be NaN: "
                        "columns: {{{}: float}}",
                        name, name));
      case MissingRule::Action::kError:
        break;
    }
    if (left_.empty()) first_left_ = name;
    left_.push_back(fmt::format("{} in {} of {} rows (first in line {})", name,
                                with_thousands(static_cast<int64_t>(gaps.size())),
                                with_thousands(static_cast<int64_t>(cells.size())),
                                table_.lines[gaps[0]]));
  }

  /// As the cells that are there are; text when there are none.
  CsvType type_of_present(size_t column) const {
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

  void check_fill(const MissingRule& rule, CsvType type, bool has_type) const {
    if (!is_number(type)) return;
    const CsvType found = infer_csv_type({rule.fill});
    const bool must_be_whole = type == CsvType::kInt && has_type;
    if (found == CsvType::kInt || (found == CsvType::kFloat && !must_be_whole)) return;
    throw params_.error(rule.place,
                        fmt::format("expected a {}, as the column holds, found \"{}\"",
                                    must_be_whole ? "whole number" : "number", rule.fill));
  }

  CsvTable& table_;
  const Config& params_;
  std::map<std::string, CsvColumnOptions> options_;
  MissingRule rule_{.action = MissingRule::Action::kError,
                    .fill = {},
                    .place = "missing",
                    .is_named = false};       ///< Of columns that `rules_` does not name.
  std::map<std::string, MissingRule> rules_;  ///< By column.
  std::vector<std::string> left_;             ///< Columns whose rule is an error, described.
  std::string first_left_;
};

CsvTable read_table(const Config& params) {
  CsvTable table = read_csv(get_file(params, "path"), get_separator(params));
  if (table.lines.empty()) throw Error(table.path + ": holds no rows below its header");
  MissingValues(table, params).apply();
  return table;
}

/// A table in a CSV file (RFC 4180, plain or gzip) whose first line names the columns; one row is
/// one example, a column's name its key, in which a slash nests.
///
/// Parameters: `path`, the file; `separator` = ","; `size` and `channels` of images as ImageReader
/// has them; `columns`, a map from a column to its type, or to `{type: ..., key: ...}` to give it
/// another key:
///
///     columns: {file: {type: image, key: image}, label: {type: class, key: class}, name: text}
///
/// The types: `int`, an int64 []; `float`, a float []; `text`; `class`, an int64 [] that is the
/// text's place among all texts of the column, sorted, or in the list `classes`; `image`, the path
/// of a PNG or JPEG relative to the CSV file, read as float [C, H, W] in [-1, 1]; `skip`. Columns
/// that are not named are int, float or text, whatever all of their cells are that are not missing.
/// A column without a name, as pandas writes its index, is left out.
///
/// Missing are, in a column of numbers, cells that are empty, NA, NaN, null or None, and in one of
/// classes or images empty cells. `missing` says what to do about them: `error`, the default;
/// `drop`, to leave out the row, so that `index` counts the rows that are left; `nan`; or a map
/// from a column to one of these or to the value to read instead: {age: 0, income: nan}. An empty
/// text counts as missing only where that map names its column.
///
/// Throws Error with file, line and column for a cell of another type and for a missing image, with
/// the columns for missing values, and when there are no rows.
class Csv : public Dataset {
 public:
  explicit Csv(const Config& params)
      : reader_(params), table_(read_table(params)), columns_(read_csv_columns(table_, params)) {
    table_.columns.clear();
    table_.columns.shrink_to_fit();
    for (const auto& column : columns_) {
      has_images_ = has_images_ || column.type == CsvType::kImage;
    }
  }

  int64_t size() const override { return static_cast<int64_t>(table_.lines.size()); }

  Example get(int64_t index, Random& /*random*/) const override {
    check_index(index, size());
    const auto row = static_cast<size_t>(index);
    Example example;
    for (const auto& column : columns_) {
      if (column.type == CsvType::kText) {
        example.texts.set(column.key, column.texts[row]);
      } else if (column.type == CsvType::kImage) {
        example.tensors.set(column.key, read_image_of(column, row));
      } else {
        example.tensors.set(column.key, column.numbers.select(0, index).clone());
      }
    }
    return example;
  }

  /// Gathers at once unless there are images to read.
  std::optional<Batch> get_batch(std::span<const int64_t> indices,
                                 std::span<Random> /*randoms*/) const override {
    if (has_images_) return std::nullopt;
    at::Tensor rows = at::empty({static_cast<int64_t>(indices.size())}, at::kLong);
    std::copy(indices.begin(), indices.end(), rows.mutable_data_ptr<int64_t>());
    for (const int64_t index : indices) check_index(index, size());
    OrderedMap<at::Tensor> tensors;
    OrderedMap<std::vector<std::string>> texts;
    for (const auto& column : columns_) {
      if (column.type == CsvType::kText) {
        std::vector<std::string> cells;
        for (const int64_t index : indices) {
          cells.push_back(column.texts[static_cast<size_t>(index)]);
        }
        texts.set(column.key, std::move(cells));
      } else {
        tensors.set(column.key, column.numbers.index_select(0, rows));
      }
    }
    return Batch(std::move(tensors), std::move(texts),
                 std::vector<int64_t>(indices.begin(), indices.end()));
  }

  /// For the key of an int, float or class column its values, [size()].
  at::Tensor labels(std::string_view key) const override {
    for (const auto& column : columns_) {
      if (column.key == key) return column.numbers;
    }
    return {};
  }

  std::vector<std::string> label_keys() const override {
    std::vector<std::string> keys;
    for (const auto& column : columns_) {
      if (column.numbers.defined()) keys.push_back(column.key);
    }
    return keys;
  }

  Batch collate(const std::vector<Example>& examples, std::vector<int64_t> indices) const override {
    return ImageReader::collate(examples, std::move(indices));
  }

 private:
  at::Tensor read_image_of(const CsvColumn& column, size_t row) const {
    try {
      return reader_.read(column.texts[row]);
    } catch (const Error& error) {
      throw Error(fmt::format("{}:{}: column \"{}\": {}", table_.path, table_.lines[row],
                              column.name, error.what()));
    }
  }

  ImageReader reader_;
  CsvTable table_;  ///< Path and lines only; the cells are in `columns_`.
  std::vector<CsvColumn> columns_;
  bool has_images_ = false;
};

STEPOP_REGISTER_DATASET(
    Csv,
    {"A table in a CSV file whose columns are values or paths of images.",
     {{"path", "", "file whose first line names the columns", true},
      {"columns", "null",
       "map from a column to its type (int, float, text, class, image, skip), or to "
       "{type: ..., key: ..., classes: [...]}; null: int, float or text, as the cells are"},
      {"missing", "error",
       "what to do with missing values: error; drop, to leave out the row; nan; or a map from "
       "a column to one of these or to the value to read instead, {age: 0}"},
      {"separator", "\",\"", "one character"},
      {"size", "null", "[H, W] to resize images to; null: as stored"},
      {"channels", "null", "of images, 1 (grey), 3 (colour) or 4 (with alpha); null: as stored"}}});

}  // namespace
}  // namespace stepop
