#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/core/base/ordered_map.h"
#include "runtime/core/value/value.h"
#include "runtime/tools/report/run_curves.h"
#include "runtime/train/run/run_summary.h"

namespace stepop {

/// One of the runs, with its letter or number in the tables.
struct ComparedRun {
  std::string label;
  RunSummary summary;
  std::optional<Value> config = {};  ///< Nothing if it cannot be read.
  OrderedMap<ScalarSummary> scalars = {};
};

/// The width of comparisons, where possible.
inline constexpr size_t kMostCompareWidth = 100;

/// Compares many runs: a row for each run, with the metric of its config and a column for each key
/// in which the configs differ; several tables when one would be too wide. The number of other
/// metrics follows.
std::string compare_rows_text(const std::vector<ComparedRun>& runs);

}  // namespace stepop
