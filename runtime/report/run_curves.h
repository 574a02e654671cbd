#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "runtime/ordered_map.h"
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
  /// The numbers of evaluations by step: those whose op is no `log_op` and no `train_op`.
  std::map<int64_t, OrderedMap<double>> evaluations;
  int64_t broken_lines = 0;  ///< Lines of the file that are no metrics.
};

/// Reads the metrics file of a run once; all curves together keep about 100,000 points. Empty when
/// there is no such file; throws Error when it cannot be read.
RunCurves read_curves(const std::string& metrics_file);

}  // namespace stepop
