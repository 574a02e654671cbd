#include "runtime/data/datasets/tables/csv_columns.h"

#include <ATen/ops/empty.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "runtime/core/base/float32.h"
#include "runtime/core/base/key_hash.h"
#include "runtime/core/base/nearest.h"
#include "runtime/core/base/text.h"
#include "runtime/data/datasets/tables/csv_numbers.h"
#include "runtime/data/datasets/tables/float32_loss.h"

namespace stepop {
namespace {

const std::map<std::string, CsvType, std::less<>>& type_names() {
  static const std::map<std::string, CsvType, std::less<>> names = {
      {"int", CsvType::kInt},     {"float", CsvType::kFloat}, {"text", CsvType::kText},
      {"class", CsvType::kClass}, {"image", CsvType::kImage}, {"mask", CsvType::kMask},
      {"skip", CsvType::kSkip}};
  return names;
}

CsvType type_of(const Value& value, const Config& params, const std::string& path) {
  const auto found = value.is_text() ? type_names().find(value.as_text()) : type_names().end();
  if (found != type_names().end()) return found->second;
  throw params.error(path, fmt::format("expected a type: int, float, text, class, image, mask or "
                                       "skip; "
                                       "found {}",
                                       value.describe()));
}

/// The options at `columns/<name>`: a type, or a map of `type`, `key` and `classes`. Names may hold
/// a slash, so the map is walked directly, not by key paths.
CsvColumnOptions read_options(const std::string& name, const Value& value, const Config& params) {
  const std::string path = join_path("columns", name);
  CsvColumnOptions options{.key = name, .type = {}, .classes = {}};
  bool is_for_classes = false;
  if (!value.is_map()) {
    options.type = type_of(value, params, path);
    return options;
  }
  for (const auto& [option, content] : value.as_map()) {
    const std::string place = join_path(path, option);
    is_for_classes = is_for_classes || option == "classes" || option == "unknown";
    if (option == "type") {
      options.type = type_of(content, params, place);
    } else if (option == "unknown") {
      options.has_unknown = content == Value("id");
      if (!options.has_unknown && content != Value("error")) {
        throw params.error(place,
                           "expected error or id, the number after those of the classes; found " +
                               content.describe());
      }
    } else if (option == "key" && content.is_text() && !content.as_text().empty()) {
      options.key = content.as_text();
    } else if (option == "classes" && content.is_list()) {
      for (const auto& item : content.as_list()) {
        if (!item.is_text()) {
          throw params.error(place, "expected a list of texts, found in it " + item.describe());
        }
        options.classes.push_back(item.as_text());
      }
    } else if (option == "key" || option == "classes") {
      throw params.error(
          place, fmt::format("expected {}, found {}",
                             option == "key" ? "a text" : "a list of texts", content.describe()));
    } else {
      throw params.error(place, fmt::format("unknown option \"{}\"; a column has type, key, "
                                            "classes and unknown",
                                            option));
    }
  }
  if (is_for_classes && options.type != CsvType::kClass) {
    throw params.error(path, "\"classes\" and \"unknown\" are for a column of \"type: class\"");
  }
  return options;
}

bool parse_int(const std::string& cell, int64_t& number) {
  return parse_csv_number(cell, number) == std::errc();
}

/// A number that float32 can hold.
bool parse_float(const std::string& cell, double& number) {
  return parse_csv_number(cell, number) == std::errc() &&
         (!std::isfinite(number) || fits_float32(number));
}

/// `advice`, a function of a cell that cannot be parsed, ends the message.
template <class T, class Parse, class Advice>
at::Tensor numbers(const CsvTable& table, size_t column, at::ScalarType type, const char* expected,
                   const Parse& parse_cell, const Advice& advice) {
  const auto& cells = table.columns[column];
  at::Tensor all = at::empty({static_cast<int64_t>(cells.size())}, type);
  auto* target = all.mutable_data_ptr<T>();
  for (size_t row = 0; row < cells.size(); ++row) {
    if (parse_cell(cells[row], target[row])) continue;
    throw Error(fmt::format("{}: expected {}, found {}{}", table.where(column, row), expected,
                            cells[row].empty() ? "an empty cell" : '"' + cells[row] + '"',
                            advice(cells[row])));
  }
  return all;
}

/// The texts of a column, sorted.
std::vector<std::string> texts_of(std::vector<std::string> cells) {
  std::sort(cells.begin(), cells.end());
  cells.erase(std::unique(cells.begin(), cells.end()), cells.end());
  std::erase(cells, "");
  return cells;
}

/// Reads a class column's numbers.
void number_classes(const CsvTable& table, size_t column, const CsvColumnOptions& options,
                    const Config& params, const CsvClasses& fitted, CsvColumn& result) {
  FoundClasses found{.names = options.classes, .has_unknown = options.has_unknown};
  const auto of_training = fitted.names.find(result.name);
  const bool is_fitted = found.names.empty() && of_training != fitted.names.end();
  if (is_fitted) {
    found.names = of_training->second;
    found.are_of_training = fitted.are_of_training;
  } else if (found.names.empty()) {
    found.names = texts_of(table.columns[column]);
  }
  const ClassNumbers& classes = result.classes.emplace(params, options.key, std::move(found));
  const std::string expected = is_fitted || classes.are_given()
                                   ? classes.expected()
                                   : fmt::format("a class of {}", list_text(classes.names()));
  std::unordered_map<std::string_view, std::optional<int64_t>, KeyHash> known;
  result.numbers = numbers<int64_t>(
      table, column, at::kLong, expected.c_str(),
      [&](const std::string& cell, int64_t& number) {
        const auto [place, is_new] = known.try_emplace(cell);
        if (is_new) place->second = classes.find(cell);
        number = place->second.value_or(0);
        return place->second.has_value();
      },
      [](const std::string&) { return std::string(); });
}

/// The files that the cells name, relative to the table's own folder. A missing file is found here
/// rather than in the middle of a run.
std::vector<std::string> image_paths(const CsvTable& table, size_t column) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::path(table.path).parent_path();
  std::vector<std::string> paths;
  for (size_t row = 0; row < table.lines.size(); ++row) {
    const std::string& cell = table.columns[column][row];
    if (cell.empty()) {
      throw Error(table.where(column, row) +
                  ": expected the path of an image, found an empty cell");
    }
    paths.push_back((folder / cell).lexically_normal().string());
    std::error_code ignored;
    if (!fs::is_regular_file(paths.back(), ignored)) {
      throw Error(fmt::format("{}: no such file: {}", table.where(column, row), paths.back()));
    }
  }
  return paths;
}

void set_floats(CsvColumn& column, const at::Tensor& float64) {
  column.numbers = float64.to(at::kFloat);
  if (float32_loss(float64).share > kLeastFloat32Loss) column.exact = float64;
}

CsvColumn read_column(const CsvTable& table, size_t column, const CsvColumnOptions& options,
                      const Config& params, const CsvClasses& classes) {
  const auto& cells = table.columns[column];
  CsvColumn result{.name = table.header[column],
                   .key = options.key,
                   .type = options.type ? *options.type : infer_csv_type(cells),
                   .numbers = {},
                   .texts = {}};
  const bool has_decimal_commas = params.get("decimal", ".") == ",";
  const auto advice = [&](const std::string& cell) {
    return number_advice(cell, has_decimal_commas);
  };
  switch (result.type) {
    case CsvType::kInt:
      result.numbers =
          numbers<int64_t>(table, column, at::kLong, "a whole number", parse_int, advice);
      break;
    case CsvType::kFloat:
      set_floats(result, numbers<double>(table, column, at::kDouble, "a float32 number",
                                         parse_float, advice));
      break;
    case CsvType::kClass:
      number_classes(table, column, options, params, classes, result);
      break;
    case CsvType::kText:
      result.texts = cells;
      break;
    case CsvType::kImage:
    case CsvType::kMask:
      result.texts = image_paths(table, column);
      break;
    case CsvType::kSkip:
      break;
  }
  if (options.type) return result;
  result.note = result.type == CsvType::kText ? note_on_text(table, column, has_decimal_commas)
                                              : note_on_leading_zeros(table, column);
  return result;
}

}  // namespace

void check_csv_column(const CsvTable& table, const std::string& name, const Config& params,
                      const std::string& place) {
  if (table.places.contains(name)) return;
  constexpr size_t kMostNames = 100;
  const auto near = nearest_names(name, table.header, 1);
  throw params.error(place, fmt::format("{} has no such column{} it has: {}", table.path,
                                        near.empty() ? ";" : "; did you mean \"" + near[0] + "\"?",
                                        list_text(table.header, kMostNames)));
}

std::map<std::string, CsvColumnOptions> read_csv_options(const CsvTable& table,
                                                         const Config& params) {
  std::map<std::string, CsvColumnOptions> all;
  if (!params.has("columns")) return all;
  const auto columns = params.get<Value>("columns");
  if (!columns.is_map()) {
    throw params.error("columns", fmt::format("expected a map from columns to types, found {}",
                                              columns.describe()));
  }
  for (const auto& [name, value] : columns.as_map()) {
    check_csv_column(table, name, params, join_path("columns", name));
    all[name] = read_options(name, value, params);
  }
  return all;
}

void read_decimal_commas(CsvTable& table, const Config& params) {
  const auto decimal = params.get("decimal", ".");
  if (decimal == ".") return;
  if (decimal != ",") {
    throw params.error("decimal", fmt::format("expected \".\" or \",\", found \"{}\"", decimal));
  }
  const auto options = read_csv_options(table, params);
  for (size_t c = 0; c < table.header.size(); ++c) {
    const auto option = options.find(table.header[c]);
    const auto type = option == options.end() ? std::nullopt : option->second.type;
    if (type && type != CsvType::kInt && type != CsvType::kFloat) continue;
    auto& cells = table.columns[c];
    std::vector<std::string> numbers = cells;
    bool are_numbers = true;
    std::optional<size_t> with_point;
    for (size_t row = 0; row < cells.size() && (type || are_numbers); ++row) {
      double number = 0;
      if (is_missing_number(cells[row])) continue;
      if (auto plain = from_decimal_comma(cells[row])) {
        numbers[row] = std::move(*plain);
      } else if (parse_csv_number(cells[row], number) != std::errc() ||
                 cells[row].find('.') == std::string::npos) {
        are_numbers =
            parse_csv_number(cells[row], number) == std::errc() && are_numbers;  // inf is one
      } else if (!with_point) {
        with_point = row;
      }
    }
    if (with_point && (type || are_numbers)) {
      throw Error(fmt::format(
          "{}: expected a number with a decimal comma, as \"decimal\" says, found \"{}\"; columns: "
          "{{\"{}\": text}} reads the column as text",
          table.where(c, *with_point), cells[*with_point], table.header[c]));
    }
    if (type || are_numbers) cells = std::move(numbers);
  }
}

CsvType infer_csv_type(const std::vector<std::string>& cells) {
  CsvType type = CsvType::kInt;
  for (const auto& cell : cells) {
    int64_t whole = 0;
    double number = 0;
    const std::errc status = parse_csv_number(cell, whole);
    if (status == std::errc()) continue;
    if (status == std::errc::result_out_of_range || !parse_float(cell, number)) {
      return CsvType::kText;
    }
    type = CsvType::kFloat;
  }
  return type;
}

std::vector<CsvColumn> read_csv_columns(const CsvTable& table, const Config& params,
                                        const CsvClasses& classes,
                                        const std::vector<std::string>& floats) {
  const auto all_options = read_csv_options(table, params);
  std::vector<CsvColumn> columns;
  std::unordered_map<std::string, std::string, KeyHash> names;  // the columns' names by their keys
  for (size_t c = 0; c < table.header.size(); ++c) {
    const std::string& name = table.header[c];
    const auto found = all_options.find(name);
    const bool is_named = found != all_options.end();
    if (name.empty() && !is_named) continue;
    CsvColumnOptions options =
        is_named ? found->second : CsvColumnOptions{.key = name, .type = {}, .classes = {}};
    if (options.type == CsvType::kSkip) continue;
    if (!options.type && std::find(floats.begin(), floats.end(), name) != floats.end()) {
      options.type = CsvType::kFloat;
    }
    if (options.key.empty() || options.key == "index") {
      throw Error(
          fmt::format("{}: the column \"{}\" needs another key, as \"index\" is each "
                      "example's place in the dataset: columns: {{\"{}\": {{key: row}}}}, "
                      "or leave it out: columns: {{\"{}\": skip}}",
                      table.path, name, name, name));
    }
    if (const auto [other, is_new] = names.emplace(options.key, name); !is_new) {
      throw params.error(join_path("columns", name),
                         fmt::format("the key \"{}\" is also that of the column \"{}\"",
                                     options.key, other->second));
    }
    columns.push_back(read_column(table, c, options, params, classes));
  }
  if (columns.empty()) throw Error(table.path + ": no column is left to read");
  return columns;
}

}  // namespace stepop
