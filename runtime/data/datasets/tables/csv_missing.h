#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "runtime/core/config/config.h"
#include "runtime/core/formats/csv_file.h"
#include "runtime/data/datasets/tables/csv_columns.h"

namespace stepop {

/// How the missing values of a column are handled.
struct MissingRule {
  enum class Action { kError, kDrop, kNan, kFill, kMean, kMedian };

  Action action = Action::kError;
  std::string fill = {};          ///< For kFill: the cell to read instead.
  std::string place = "missing";  ///< The rule's place in the config.
  bool is_named = false;          ///< The rule names this column rather than applying to all
                                  ///< columns.

  bool is_fitted() const { return action == Action::kMean || action == Action::kMedian; }
  bool is_filled() const { return is_fitted() || action == Action::kFill; }
};

/// The missing values of a table, and the parameter `missing`, which says what to do about them.
class MissingValues {
 public:
  /// Finds the missing values. Throws UsageError for an invalid rule.
  MissingValues(const CsvTable& table, const Config& params);

  /// Throws Error if columns have missing values but no rule. The message lists the columns, the
  /// number of missing values and remedies.
  void check() const;

  /// The rows that the rules leave out.
  const std::vector<bool>& dropped() const { return is_dropped_; }

  /// The statistics of all columns whose rule is a statistic, with or without missing values here,
  /// over the rows that `is_taken` marks. Throws Error for a column without values in these rows.
  std::map<std::string, double> fit(const std::vector<bool>& is_taken) const;
  /// The names of the columns whose rule is a statistic.
  std::vector<std::string> fitted_columns() const;

  /// The constant that fills a column; empty when there is none.
  std::string constant_of(const std::string& name) const;

  /// Fills the missing cells of `table`; `fitted` is the result of `fit`.
  void fill(CsvTable& table, const std::map<std::string, double>& fitted) const;

  /// The columns whose missing values are filled, here or in another file of this config, each with
  /// whether its cells are missing.
  std::vector<std::pair<std::string, std::vector<bool>>> masks() const;

  /// `age in 5 rows by 38.2, its mean`, for each column that is filled.
  std::vector<std::string> fill_texts(const std::map<std::string, double>& fitted) const;

 private:
  struct Column {
    size_t place;  ///< The column's index in the table.
    MissingRule rule;
    CsvType type;
    bool has_type;             ///< The config gives the type.
    std::vector<size_t> gaps;  ///< The rows with missing cells.
  };

  void add(size_t place, const std::map<std::string, CsvColumnOptions>& options);
  void check_fill(const Column& column) const;
  CsvType type_of_present(size_t column) const;
  const std::string& name_of(const Column& column) const { return table_.header[column.place]; }

  const CsvTable& table_;
  const Config& params_;
  MissingRule rule_;                          ///< For columns that `rules_` does not name.
  std::map<std::string, MissingRule> rules_;  ///< By column.
  std::vector<Column> columns_;
  std::vector<bool> is_dropped_;
};

}  // namespace stepop
