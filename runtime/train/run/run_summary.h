#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/core/config/value.h"
#include "runtime/train/run/run_lock.h"

namespace stepop {

/// One run as a list of runs shows it. What cannot be read is left empty.
struct RunSummary {
  std::string root;  ///< Its folder.
  std::string name;  ///< As it is listed: `2026-11-21T10-00-00_digits`, `debug_runs/...`.
  RunStatus status;
  std::optional<int64_t> step;
  std::optional<double> epoch;       ///< With its fraction.
  std::optional<double> num_epochs;  ///< Where it is to end, if its config says so.
  /// The first of these that there is: `checkpoints/metric` of its config, `stop_when/metric`, the
  /// first number of its newest evaluation, the first number that it logged last. A run that never
  /// trained is shown by its newest evaluation alone.
  std::string metric;
  std::optional<double> last;  ///< The newest value of the metric.
  /// The best value, by `metric_direction`. For a metric that the config names: that of the best
  /// checkpoint. For others it is looked up in the metrics file, if that has no more than 1 MB.
  std::optional<double> best;
  bool more_is_better = false;  ///< Of the metric, as far as that is known.
  double age = 0;               ///< Seconds since the run wrote something.
  Value config = Value::Map{};  ///< The newest; empty when it cannot be read.
};

/// `checkpoints/metric` of a config, else `stop_when/metric`; empty when it names neither.
std::string metric_of(const Value& config);

/// Whether this is the folder of a run, whole or not.
bool is_run(const std::string& root);

/// Reads little, however long the run is: the newest config, the end of the metrics file and the
/// names of the checkpoints. Does not throw for a damaged run.
RunSummary summarize_run(const std::string& root);

/// The runs in `logs/`, the newest first; with `with_debug` also those in `logs/debug_runs/`.
/// Throws Error when the folder cannot be read.
std::vector<RunSummary> list_runs(const std::string& logs, bool with_debug);

}  // namespace stepop
