#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/core/log/metric_direction.h"
#include "runtime/tools/sweep/sweep_plan.h"

namespace stepop {

/// The end of a run's last process, as the sweep saw it.
struct RunEnd {
  int64_t number = 0;      ///< The run's number.
  int exit_code = 0;       ///< Valid if no signal ended the process.
  int signal = 0;          ///< The signal that ended the process, or 0.
  std::string error = {};  ///< The first line of the error; empty without an error.
};

/// Appends an end to the sweep's `ends.jsonl`.
void record_end(const SweepPlan& plan, const RunEnd& end);

/// The first line of the error in `text`, a process's output; empty without an error.
std::string error_in_output(const std::string& text);

/// The result of one run of a sweep.
struct SweepResult {
  PlannedRun run;
  std::string folder;  ///< Empty if it does not exist yet.
  /// `waiting`, `running`, `ended`, `stopped`, `failed` or `killed`.
  std::string state;
  std::optional<int64_t> step = {};
  std::optional<double> last = {};  ///< The newest value of the metric; may be NaN.
  std::optional<double> best = {};
  std::string error = {};  ///< The error of a failed run.

  bool has_ended() const { return state == "ended"; }
};

/// The metric by which the runs of a sweep compare.
struct SweepMetric {
  /// The plan's metric by its full name, else the config's; empty when no run has logged a metric.
  std::string name;
  MetricDirection direction = MetricDirection::kUnknown;
};

/// All runs of a sweep, in order.
struct SweepResults {
  SweepMetric metric;
  std::vector<SweepResult> runs;
};

/// Throws UsageError if no run has logged the plan's metric, although a run has ended.
SweepMetric choose_sweep_metric(const SweepPlan& plan);

/// The result of a run.
SweepResult read_result(const SweepPlan& plan, const PlannedRun& run, const SweepMetric& metric);

/// The results of all runs. Throws the same errors as choose_sweep_metric.
SweepResults read_results(const SweepPlan& plan);

}  // namespace stepop
