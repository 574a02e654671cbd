#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "runtime/base/ordered_map.h"
#include "runtime/report/curve.h"
#include "runtime/report/scalar_summary.h"

namespace stepop {

/// What was logged of one scalar.
struct ScalarHistory {
  Curve curve;
  ScalarSummary summary;
};

/// What a run has logged, thinned so that a page can hold it.
struct RunCurves {
  OrderedMap<ScalarHistory> scalars;  ///< By name: `train/log_op/loss`.
  Curve epochs;                       ///< The epoch, with its fraction, by step.
  Curve seconds;                      ///< The training time by step.
  int64_t samples = 0;                ///< Training examples at the last line.
  /// The numbers of evaluations by step.
  std::map<int64_t, OrderedMap<double>> evaluations;
  int64_t broken_lines = 0;  ///< Lines of the file that are no metrics.
};

/// Reads the metrics file of a run once; `eval_op` is the one whose numbers are those of
/// evaluations. Each curve keeps at most 2,000 points, and all together 100,000 or, when there are
/// more than 1,000 curves, at most 100 each; means are as many as half of them. Empty when there is
/// no such file; throws Error when it cannot be read.
RunCurves read_curves(const std::string& metrics_file,
                      const std::string& eval_op = "validation/eval_op");

}  // namespace stepop
