#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/tools/sweep/sweep_results.h"

namespace stepop {

/// Mean and standard deviation, with n - 1, of some numbers.
struct Spread {
  std::optional<double> mean;       ///< None without numbers.
  std::optional<double> deviation;  ///< None of fewer than two.
};
Spread spread_of(const std::vector<double>& numbers);

/// The runs of a sweep that differ only in the keys of `over`: a row of its table.
struct SweepGroup {
  Value::Map values;         ///< Without those of `over`.
  std::vector<size_t> runs;  ///< By their places in the results.
  size_t ended = 0;          ///< Runs that came to their end: with `over` the numbers are theirs.
  Spread best;
  Spread last;
};

/// The groups, the best first: by the mean of `best`, else of `last`; groups without numbers come
/// last. In the order of the plan when nobody knows whether more is better.
std::vector<SweepGroup> group_results(const SweepPlan& plan, const SweepResults& results);

/// The table for people, with what is to be said below it.
std::string sweep_table_text(const SweepPlan& plan, const SweepResults& results);

/// The groups and all runs as a JSON object; NaN and infinity are null.
std::string sweep_table_json(const SweepPlan& plan, const SweepResults& results);

/// The groups as CSV.
std::string sweep_table_csv(const SweepPlan& plan, const SweepResults& results);

}  // namespace stepop
