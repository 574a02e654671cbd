#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/core/base/ordered_map.h"
#include "runtime/core/config/value.h"
#include "runtime/tools/report/run_curves.h"
#include "runtime/train/run/run_summary.h"

namespace stepop {

/// One of the runs, under the letter or number by which the tables call it.
struct ComparedRun {
  std::string label;
  RunSummary summary;
  std::optional<Value> config = {};  ///< None: it cannot be read.
  OrderedMap<ScalarSummary> scalars = {};
};

/// Lines of comparisons are at most this wide, where they can.
inline constexpr size_t kMostCompareWidth = 100;

/// Many runs compared: a row for each, with the number that its config decides by and a column for
/// each key in which the configs differ; in several tables when one would be too wide. Below it,
/// how many other numbers there are.
std::string compare_rows_text(const std::vector<ComparedRun>& runs);

}  // namespace stepop
