#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runtime/core/components/parameters.h"
#include "runtime/core/config/config.h"
#include "runtime/core/formats/csv_file.h"
#include "runtime/data/datasets/tables/csv_missing.h"

namespace stepop {

/// Which part of a table's rows is taken.
struct CsvFoldOptions {
  std::optional<int64_t> folds;  ///< None: all rows, and the others are not read.
  std::optional<int64_t> fold;
  std::string part = "train";
  int64_t fold_seed = 1;
  std::optional<std::string> fold_by;

  void declare(Parameters& p);
};

/// The rows of a table that belong to a part of it.
struct CsvFolds {
  std::vector<bool> is_training;  ///< All rows without `folds`.
  std::vector<bool> is_taken;     ///< The rows of the requested part: training or validation.
};

/// The fold of a row depends on the seed and the number of rows, not on how missing values are
/// handled. Throws UsageError for invalid parameters.
CsvFolds read_csv_folds(const CsvTable& table, const CsvFoldOptions& options, const Config& params);

/// What a table needs from the training rows.
struct CsvFit {
  std::map<std::string, double> fills;  ///< The value for missing cells, by column.
  CsvClasses classes = {};
};

/// Reads the table from the file given by `path` and `separator`. With the parameter `fit`, all
/// missing parameters, these two included, are taken from the Csv of that split, except parameters
/// about columns that this table does not have, such as the targets of new rows: `absent` gets the
/// names of these columns. Throws UsageError as part_to_fit does.
CsvTable read_csv_table(const Config& params, std::vector<std::string>& absent);

/// What `table` needs from the training rows: the values that the config has from an earlier start,
/// or a fit on the table's own training rows or on the table of the split that `fit` names. New
/// values for missing cells are written into the config; ClassNumbers writes the classes.
CsvFit fit_csv(const CsvTable& table, const MissingValues& missing, const CsvFolds& folds,
               const Config& params);

}  // namespace stepop
