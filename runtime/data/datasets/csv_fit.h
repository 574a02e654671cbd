#pragma once

#include <map>
#include <string>
#include <vector>

#include "runtime/config/config.h"
#include "runtime/data/datasets/csv_missing.h"
#include "runtime/formats/csv_file.h"

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

/// With the parameter `fit`, gives this table the parameters of the Csv of that split that it lacks
/// itself. Throws UsageError as part_to_fit does.
void inherit_csv_params(const Config& params);

/// What `table` needs: as the config has it from an earlier start, else fitted on its own training
/// rows, or on the table of the split that `fit` names; and written into the config there.
CsvFit fit_csv(const CsvTable& table, const MissingValues& missing, const CsvFolds& folds,
               const Config& params);

/// `separator` and `path`: the table as it is in its file.
CsvTable read_csv_table(const Config& params);

}  // namespace stepop
