#pragma once

#include <map>
#include <string>
#include <vector>

#include "runtime/core/config/config.h"
#include "runtime/core/formats/csv_file.h"
#include "runtime/data/datasets/csv_missing.h"

namespace stepop {

/// The rows of a table that belong to a part of it, by `folds`, `fold`, `part`, `fold_seed` and
/// `fold_by`.
struct CsvFolds {
  std::vector<bool> is_training;  ///< All without `folds`.
  std::vector<bool> is_taken;     ///< Of the part that is asked for: training or validation.
};

/// Which row is in which fold follows from the seed and the number of rows, not from what is done
/// about missing values. Throws UsageError for parameters that cannot be.
CsvFolds read_csv_folds(const CsvTable& table, const Config& params);

/// What a table needs of its training rows.
struct CsvFit {
  std::map<std::string, double> fills;  ///< By column, of missing values.
  CsvClasses classes;                   ///< By column, the texts that have an id, in its order.
};

/// `path` and `separator`: the table as it is in its file. Those, and with the parameter `fit` all
/// parameters that are missing, are taken from the Csv of that split, but what is about columns
/// that this table does not have, such as the targets of new rows: `absent` gets their names.
/// Throws UsageError as part_to_fit does.
CsvTable read_csv_table(const Config& params, std::vector<std::string>& absent);

/// What `table` needs: as the config has it from an earlier start, else fitted on its own training
/// rows, or on the table of the split that `fit` names; and written into the config there.
CsvFit fit_csv(const CsvTable& table, const MissingValues& missing, const CsvFolds& folds,
               const Config& params);

}  // namespace stepop
