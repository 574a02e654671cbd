#include "runtime/data/datasets/tables/csv_fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "runtime/core/base/key_hash.h"
#include "runtime/core/base/random.h"
#include "runtime/core/base/text.h"
#include "runtime/data/dataset.h"
#include "runtime/data/datasets/tables/csv_numbers.h"
#include "runtime/data/fitted.h"

namespace stepop {
namespace {

/// Empty if the config has no separator.
std::optional<char> get_separator(const Config& params) {
  const bool is_given = params.has("separator");
  const auto separator = params.get("separator", ",");
  if (separator.size() != 1 || separator == "\"" || separator == "\n" || separator == "\r") {
    throw params.error("separator", "expected one character, as \",\" or \"\\t\"");
  }
  return is_given ? std::optional(separator[0]) : std::nullopt;
}

/// A group number for each row; rows of one group stay in the same fold.
std::vector<size_t> groups_of(const CsvTable& table, const std::optional<std::string>& name,
                              const Config& params) {
  std::vector<size_t> groups(table.lines.size());
  std::iota(groups.begin(), groups.end(), size_t{0});
  if (!name) return groups;
  check_csv_column(table, *name, params, "fold_by");
  const auto& cells = table.columns[table.places.at(*name)];
  std::unordered_map<std::string, size_t, KeyHash> numbers;
  for (size_t row = 0; row < cells.size(); ++row) {
    groups[row] = numbers.emplace(cells[row], numbers.size()).first->second;
  }
  return groups;
}

/// The fold of each group. The sizes of folds differ by at most one group.
std::vector<int64_t> folds_of(size_t groups, int64_t folds, uint64_t seed) {
  std::vector<int64_t> fold(groups);
  for (size_t i = 0; i < groups; ++i) fold[i] = static_cast<int64_t>(i) % folds;
  Random random(mix_seed({seed, seed_of("folds")}));
  for (size_t i = groups; i > 1; --i) {
    std::swap(fold[i - 1], fold[static_cast<size_t>(random.below(static_cast<int64_t>(i)))]);
  }
  return fold;
}

/// The texts of a column in the rows that are taken, sorted, including the text that fills missing
/// cells.
std::vector<std::string> classes_of(const CsvTable& table, size_t column,
                                    const std::vector<bool>& is_taken, const std::string& fill) {
  std::set<std::string> names;
  const auto& cells = table.columns[column];
  for (size_t row = 0; row < cells.size(); ++row) {
    if (is_taken[row] && !cells[row].empty()) names.insert(cells[row]);
  }
  if (!fill.empty()) names.insert(fill);
  return {names.begin(), names.end()};
}

CsvTable read_table(const Config& params) {
  CsvTable table = read_csv(get_file(params, "path"), get_separator(params));
  if (table.lines.empty()) throw Error(table.path + ": holds no rows below its header");
  return table;
}

/// Whether a table has a column, or the column to which a mask belongs; if not, its name is added
/// to `absent`.
bool is_there(const std::string& name, const CsvTable& table, std::vector<std::string>& absent) {
  constexpr std::string_view kMask = "_missing";
  const bool is_mask = name.ends_with(kMask) && !table.places.contains(name);
  const std::string column = is_mask ? name.substr(0, name.size() - kMask.size()) : name;
  if (table.places.contains(column)) return true;
  if (std::find(absent.begin(), absent.end(), column) == absent.end()) absent.push_back(column);
  return false;
}

/// A map from columns, or from vectors to lists of columns, without the columns that the table
/// lacks.
Value without_absent(const Value& value, const CsvTable& table, std::vector<std::string>& absent) {
  if (!value.is_map()) return value;
  Value::Map left;
  for (const auto& [name, item] : value.as_map()) {
    bool is_whole = item.is_list() || is_there(name, table, absent);
    if (item.is_list()) {
      for (const auto& column : item.as_list()) {
        if (column.is_text() && !is_there(column.as_text(), table, absent)) is_whole = false;
      }
    }
    if (is_whole) left.set(name, item);
  }
  return Value(left).set_origin(value.origin());
}

/// The map that an earlier start saved in the config, or null.
const Value* saved_map(const Config& params, const char* key) {
  if (!params.has(key)) return nullptr;
  const Value* value = params.peek(key);
  params.claim(key);
  if (value->is_map()) return value;
  throw params.error(key, fmt::format("expected a map from columns, found {}", value->describe()));
}

CsvFit read_saved(const Config& params) {
  CsvFit fit;
  if (const Value* fills = saved_map(params, "fills")) {
    for (const auto& [name, value] : fills->as_map()) {
      if (!value.is_float() && !value.is_int()) {
        throw params.error(join_path("fills", name),
                           "expected a number, found " + value.describe());
      }
      fit.fills[name] = value.is_float() ? value.as_float() : static_cast<double>(value.as_int());
    }
  }
  if (const Value* classes = saved_map(params, "classes")) {
    for (const auto& [name, value] : classes->as_map()) {
      auto& names = fit.classes.names[name];
      const bool is_list = value.is_list();
      for (const auto& item : is_list ? value.as_list() : Value::List{}) {
        if (item.is_text()) names.push_back(item.as_text());
      }
      if (is_list && !names.empty() && names.size() == value.as_list().size()) continue;
      throw params.error(join_path("classes", name),
                         "expected a list of texts, found " + value.describe());
    }
  }
  return fit;
}

void save_fills(const CsvFit& fit, const Config& params) {
  Value::Map fills;
  for (const auto& [name, value] : fit.fills) fills.set(name, value);
  if (!fills.empty()) params.set_default("fills", fills);
}

/// The class columns whose classes the config does not list; with `is_known` also not those whose
/// names `class_names` has.
std::vector<std::string> open_classes(const CsvTable& table, const Config& params,
                                      bool is_known = false) {
  std::vector<std::string> names;
  for (const auto& [name, options] : read_csv_options(table, params)) {
    if (options.type != CsvType::kClass || !options.classes.empty()) continue;
    if (!is_known || class_names_of(params, options.key).empty()) names.push_back(name);
  }
  return names;
}

bool has_all(const CsvFit& fit, const std::vector<std::string>& fills,
             const std::vector<std::string>& classes) {
  return std::ranges::all_of(fills, [&](const auto& name) { return fit.fills.contains(name); }) &&
         std::ranges::all_of(classes,
                             [&](const auto& name) { return fit.classes.names.contains(name); });
}

/// The fit on the table's own training rows.
CsvFit fit_here(const CsvTable& table, const MissingValues& missing, const CsvFolds& folds,
                const Config& params) {
  std::vector<bool> is_taken = folds.is_training;
  for (size_t row = 0; row < is_taken.size(); ++row) {
    if (missing.dropped()[row]) is_taken[row] = false;
  }
  CsvFit fit{.fills = missing.fit(is_taken)};
  for (const auto& name : open_classes(table, params)) {
    fit.classes.names[name] =
        classes_of(table, table.places.at(name), is_taken, missing.constant_of(name));
  }
  return fit;
}

/// Completes the values from the config with fitted values.
CsvFit complete(CsvFit saved, const CsvFit& fitted) {
  saved.fills.insert(fitted.fills.begin(), fitted.fills.end());
  saved.classes.names.insert(fitted.classes.names.begin(), fitted.classes.names.end());
  return saved;
}

}  // namespace

CsvTable read_csv_table(const Config& params, std::vector<std::string>& absent) {
  if (!params.has("fit")) {
    CsvTable table = read_table(params);
    read_decimal_commas(table, params);
    return table;
  }
  const Config part = part_to_fit(params, "Csv");
  const auto inherit = [&](const char* key) {
    const Value* value = part.peek(key);
    if (value == nullptr || value->is_null() || params.has(key)) return false;
    params.set_default(key, Value(*value));
    return true;
  };
  inherit("separator");
  inherit("decimal");
  // Folds belong to one table; another table is used whole.
  if (inherit("path")) {
    for (const char* key : {"folds", "fold", "fold_seed", "fold_by"}) inherit(key);
  }
  CsvTable table = read_table(params);
  for (const char* key : {"columns", "missing", "vectors"}) {
    const Value* value = part.peek(key);
    if (value == nullptr || value->is_null() || params.has(key)) continue;
    params.set_default(key, without_absent(*value, table, absent));
  }
  for (const char* key : {"masks", "size", "channels", "exif"}) inherit(key);
  read_decimal_commas(table, params);
  return table;
}

void CsvFoldOptions::declare(Parameters& p) {
  const Config* config = p.describe({.name = "folds",
                                     .default_value = "none",
                                     .about = "how many parts of the rows there are, by chance; "
                                              "null: one",
                                     .type = {.kind = "int", .range = at_least(2)}});
  if (config != nullptr && !config->has("folds")) {
    for (const char* key : {"fold", "part", "fold_by"}) {
      if (config->has(key)) throw config->error(key, "goes with \"folds\", the number of folds");
    }
    return;
  }
  if (config != nullptr) folds = config->get_at_least("folds", 2);
  constexpr const char* kFold = "which of them is held out, from 0";
  config != nullptr ? p.require("fold", fold, kFold, at_least(0))
                    : p.add("fold", fold, kFold, at_least(0));
  p.add("part", part, "train: the other folds; validation: the one that is held out",
        one_of({"train", "validation"}));
  p.add("fold_seed", fold_seed, "another one, other folds", at_least(0));
  p.add("fold_by", fold_by, "column whose rows with one value are in one fold");
}

CsvFolds read_csv_folds(const CsvTable& table, const CsvFoldOptions& options,
                        const Config& params) {
  const size_t rows = table.lines.size();
  CsvFolds result{std::vector<bool>(rows, true), std::vector<bool>(rows, true)};
  if (!options.folds) return result;
  const auto groups = groups_of(table, options.fold_by, params);
  const size_t count = groups.empty() ? 0 : *std::max_element(groups.begin(), groups.end()) + 1;
  const int64_t folds = *options.folds;
  if (static_cast<size_t>(folds) > count) {
    throw params.error("folds", fmt::format("expected at most {}, the number of {}, found {}",
                                            count, options.fold_by ? "groups" : "rows", folds));
  }
  const int64_t fold = *options.fold;
  if (fold >= folds) {
    throw params.error(
        "fold", fmt::format("expected 0 to {}, as folds count from 0, found {}", folds - 1, fold));
  }
  const auto fold_of_group = folds_of(count, folds, static_cast<uint64_t>(options.fold_seed));
  for (size_t row = 0; row < rows; ++row) {
    result.is_training[row] = fold_of_group[groups[row]] != fold;
    result.is_taken[row] = result.is_training[row] == (options.part == "train");
  }
  return result;
}

CsvFit fit_csv(const CsvTable& table, const MissingValues& missing, const CsvFolds& folds,
               const Config& params) {
  const auto fills = missing.fitted_columns();
  if (!params.has("fit")) {
    CsvFit fit = read_saved(params);
    if (has_all(fit, fills, open_classes(table, params))) return fit;
    fit = complete(std::move(fit), fit_here(table, missing, folds, params));
    save_fills(fit, params);
    return fit;
  }
  const Config part = part_to_fit(params, "Csv");
  const auto classes = open_classes(table, params, /*is_known=*/true);
  CsvFit fit = read_saved(part);
  if (!has_all(fit, fills, classes)) {
    CsvTable training = read_table(part);
    read_decimal_commas(training, part);
    const MissingValues missing_there(training, part);
    fit = complete(
        std::move(fit),
        fit_here(training, missing_there,
                 read_csv_folds(training, read_parameters<CsvFoldOptions>(part), part), part));
    save_fills(fit, part);
  }
  fit.classes.are_of_training = params.get<std::string>("fit") == "train";
  for (const auto& name : fills) {
    if (fit.fills.contains(name)) continue;
    throw params.error(join_path("missing", name),
                       fmt::format("{} has no mean or median of that column: give it the same "
                                   "\"missing\"",
                                   part.path()));
  }
  for (const auto& name : classes) {
    if (fit.classes.names.contains(name)) continue;
    throw params.error(join_path("columns", name),
                       fmt::format("{} has no such column of \"type: class\", or gives its classes "
                                   "in its config",
                                   part.path()));
  }
  return fit;
}

}  // namespace stepop
