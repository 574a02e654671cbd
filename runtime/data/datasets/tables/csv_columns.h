#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runtime/core/config/config.h"
#include "runtime/core/formats/csv_file.h"
#include "runtime/data/class_numbers.h"

namespace stepop {

/// The types of columns; `type_names` in csv_columns.cpp has their names in a config.
enum class CsvType { kInt, kFloat, kText, kClass, kImage, kMask, kSkip };

/// One column of a table, converted as its config says.
struct CsvColumn {
  std::string name;  ///< The name in the file's header.
  std::string key;   ///< The key in an example.
  CsvType type;
  at::Tensor numbers;     ///< [rows]: int64 for ints and classes, float for floats.
  at::Tensor exact = {};  ///< float64, where float32 loses digits that matter; else undefined.
  std::vector<std::string> texts;            ///< Texts, or the absolute paths of images and masks.
  std::optional<ClassNumbers> classes = {};  ///< Of a class column.
  std::string note = {};                     ///< A warning about how the cells were read.
};

/// What the config says about a column.
struct CsvColumnOptions {
  std::string key;              ///< The column's name by default.
  std::optional<CsvType> type;  ///< By default, `infer_csv_type` finds it.
  std::vector<std::string> classes;
  bool has_unknown = false;  ///< Any text that is not a class gets the next id after the classes.
};

/// The texts of the training rows in each class column, by name.
struct CsvClasses {
  std::map<std::string, std::vector<std::string>> names;
  bool are_of_training = false;  ///< `fit: train` has found them.
};

/// The parameter `columns`: a map from a column to its type, or to a map of `type`, `key`,
/// `classes` and `unknown`. Throws UsageError for anything else and for a column that `table` does
/// not have.
std::map<std::string, CsvColumnOptions> read_csv_options(const CsvTable& table,
                                                         const Config& params);

/// With `decimal: ","`, rewrites the numbers of columns of numbers with a point, and without points
/// between thousands: 1.234,56 becomes 1234.56. A column without a type in the config is one of
/// numbers when all cells that are not missing are such numbers. Throws UsageError for another
/// value of `decimal`, and Error with file, line and column for a number with a decimal point.
void read_decimal_commas(CsvTable& table, const Config& params);

/// Int when all cells are whole numbers, else float when all cells are numbers (`nan` and `inf`
/// count), else text. Digits that overflow an int64 make the column text: they are an identifier
/// rather than a float.
CsvType infer_csv_type(const std::vector<std::string>& cells);

/// Throws UsageError at `place` if `table` has no column `name`; the message lists its columns.
void check_csv_column(const CsvTable& table, const std::string& name, const Config& params,
                      const std::string& place);

/// Reads the columns of `table` that the parameter `columns` does not skip; csv.cpp describes the
/// types. `classes` gives the names of a column's classes where the config does not; without an
/// entry, they are all texts of the column. ClassNumbers gives their numbers. The columns in
/// `floats` are floats unless the config says otherwise. Throws Error with file, line and column
/// for a cell that does not fit its column's type.
std::vector<CsvColumn> read_csv_columns(const CsvTable& table, const Config& params,
                                        const CsvClasses& classes = {},
                                        const std::vector<std::string>& floats = {});

}  // namespace stepop
