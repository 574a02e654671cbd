#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/core/log/metric_direction.h"
#include "runtime/tools/sweep/sweep_plan.h"

namespace stepop {

/// How the last process of a run ended, as the sweep saw it.
struct RunEnd {
  int64_t number = 0;      ///< Of the run.
  int exit_code = 0;       ///< When no signal ended it.
  int signal = 0;          ///< The signal that ended it, or 0.
  std::string error = {};  ///< The first line of its error; empty without one.
};

/// Appends an end to the sweep's `ends.jsonl`.
void record_end(const SweepPlan& plan, const RunEnd& end);

/// The first line of the error in what a process printed, `text`; empty without one.
std::string error_in_output(const std::string& text);

/// What became of one run of a sweep.
struct SweepResult {
  PlannedRun run;
  std::string folder;  ///< Empty: it has none yet.
  /// `waiting`, `running`, `ended`, `stopped`, `failed` or `killed`.
  std::string state;
  std::optional<int64_t> step = {};
  std::optional<double> last = {};  ///< The newest value of the metric; may be NaN.
  std::optional<double> best = {};
  std::string error = {};  ///< Why it failed.

  bool has_ended() const { return state == "ended"; }
};

/// By what the runs of a sweep compare.
struct SweepMetric {
  /// The plan's, by its whole name, else the config's own; empty when no run has logged any.
  std::string name;
  MetricDirection direction = MetricDirection::kUnknown;
};

/// All runs of a sweep, in their order.
struct SweepResults {
  SweepMetric metric;
  std::vector<SweepResult> runs;
};

/// Throws UsageError for a metric of the plan that no run has logged, though one has ended.
SweepMetric choose_sweep_metric(const SweepPlan& plan);

/// What became of a run.
SweepResult read_result(const SweepPlan& plan, const PlannedRun& run, const SweepMetric& metric);

/// What became of all runs. Throws as choose_sweep_metric does.
SweepResults read_results(const SweepPlan& plan);

}  // namespace stepop
