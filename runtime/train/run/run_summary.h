#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/core/value/value.h"
#include "runtime/train/run/run_lock.h"

namespace stepop {

/// One run in a list of runs. Values that cannot be read are empty.
struct RunSummary {
  std::string root;  ///< The run's folder.
  std::string name;  ///< The name in the list: `2026-11-21T10-00-00_digits`, `debug_runs/...`.
  RunStatus status;
  std::optional<int64_t> step;
  std::optional<double> epoch;       ///< With its fraction.
  std::optional<double> num_epochs;  ///< Where the run is to end, if its config says so.
  /// The first that exists: `checkpoints/metric` of the config, `stop_when/metric`, the first
  /// number of the newest evaluation, the first number of the last log. A run without a training
  /// only has the result of its newest evaluation.
  std::string metric;
  std::optional<double> last;  ///< The newest value of the metric.
  /// The best value, by `metric_direction`. For a metric that the config names: the value at the
  /// best checkpoint. For other metrics: the best in the metrics file, if the file has at most 1
  /// MB.
  std::optional<double> best;
  bool more_is_better = false;  ///< For the metric, as far as known.
  double age = 0;               ///< Seconds since the run logged or saved something.
  Value config = Value::Map{};  ///< The newest config; empty when it cannot be read.
};

/// `checkpoints/metric` of a config, otherwise `stop_when/metric`; empty without either.
std::string metric_of(const Value& config);

/// Whether this is the folder of a run, complete or not.
bool is_run(const std::string& root);

/// Reads little, however long the run is: the newest config, the end of the metrics file and the
/// names of the checkpoints. Does not throw for a damaged run.
RunSummary summarize_run(const std::string& root);

/// The runs in `logs/`, newest first; with `with_debug` also those in `logs/debug_runs/`. Throws
/// Error when the folder cannot be read.
std::vector<RunSummary> list_runs(const std::string& logs, bool with_debug);

}  // namespace stepop
