#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/tools/sweep/sweep_results.h"

namespace stepop {

/// The mean and the standard deviation (with n - 1) of some numbers.
struct Spread {
  std::optional<double> mean;       ///< Nothing without numbers.
  std::optional<double> deviation;  ///< Nothing for fewer than two numbers.
};
Spread spread_of(const std::vector<double>& numbers);

/// The runs of a sweep that differ only in the keys of `over`: a row of the table.
struct SweepGroup {
  Value::Map values;         ///< Without the keys of `over`.
  std::vector<size_t> runs;  ///< By their places in the results.
  size_t ended = 0;          ///< Completed runs; with `over`, the numbers are from these runs.
  Spread best;
  Spread last;
};

/// The groups, best first: by the mean of `best`, else of `last`; groups without numbers come last.
/// If the better direction is unknown, the groups are in the order of the plan.
std::vector<SweepGroup> group_results(const SweepPlan& plan, const SweepResults& results);

/// The table as text, with its notes.
std::string sweep_table_text(const SweepPlan& plan, const SweepResults& results);

/// The groups and all runs as a JSON object; NaN and infinity are null.
std::string sweep_table_json(const SweepPlan& plan, const SweepResults& results);

/// The groups as CSV.
std::string sweep_table_csv(const SweepPlan& plan, const SweepResults& results);

}  // namespace stepop
