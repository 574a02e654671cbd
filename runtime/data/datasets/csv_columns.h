#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runtime/core/config/config.h"
#include "runtime/core/formats/csv_file.h"

namespace stepop {

/// The types of columns; `type_names` in csv_columns.cpp has their names in a config.
enum class CsvType { kInt, kFloat, kText, kClass, kImage, kSkip };

/// One column of a table as its config asks for.
struct CsvColumn {
  std::string name;  ///< In the file's header.
  std::string key;   ///< In an example.
  CsvType type;
  at::Tensor numbers;              ///< [rows]: int64 of ints and classes, float of floats.
  std::vector<std::string> texts;  ///< Texts, or the absolute paths of images.
};

/// What the config says about a column.
struct CsvColumnOptions {
  std::string key;              ///< The column's name by default.
  std::optional<CsvType> type;  ///< None: as `infer_csv_type` finds it.
  std::vector<std::string> classes;
  bool has_unknown = false;  ///< Of classes: a text that is none of them has the id behind them.
  bool is_fitted = false;    ///< The classes are those of training rows.
};

/// The texts of columns of classes that have an id, by the columns' names.
using CsvClasses = std::map<std::string, std::vector<std::string>>;

/// The parameter `columns`: a map from a column to its type, or to a map of `type`, `key`,
/// `classes` and `unknown`. Throws UsageError for anything else and for a column that `table` does
/// not have.
std::map<std::string, CsvColumnOptions> read_csv_options(const CsvTable& table,
                                                         const Config& params);

/// Int when all cells are whole numbers, else float when all are numbers (`nan` and `inf` are),
/// else text. Digits that overflow an int64 are an identifier rather than a float.
CsvType infer_csv_type(const std::vector<std::string>& cells);

/// Throws UsageError at `place` for a column `name` that `table` does not have, with those that it
/// has.
void check_csv_column(const CsvTable& table, const std::string& name, const Config& params,
                      const std::string& place);

/// Reads the columns of `table` that the parameter `columns` does not skip; for what a type means
/// see csv.cpp. Of `classes`, those of a column whose classes the config does not give; without
/// them they are all texts of the column. The columns in `floats` are floats unless the config says
/// otherwise. Throws Error with file, line and column for a cell that is not of its column's type.
std::vector<CsvColumn> read_csv_columns(const CsvTable& table, const Config& params,
                                        const CsvClasses& classes = {},
                                        const std::vector<std::string>& floats = {});

}  // namespace stepop
