#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/config/value.h"
#include "runtime/run/run_lock.h"

namespace stepop {

/// What a list of runs shows of one. Whatever cannot be read is left out.
struct RunSummary {
  std::string root;  ///< Its folder.
  std::string name;  ///< As it is listed: `2026-11-21T10-00-00_digits`, `debug_runs/...`.
  RunStatus status;
  std::optional<int64_t> step;
  std::optional<double> epoch;       ///< With its fraction.
  std::optional<double> num_epochs;  ///< Where it is to end, if its config says so.
  /// `checkpoints/metric` of its config, else `stop_when/metric`, else the first number of its
  /// newest evaluation, else the first one that it logged last. Empty when there is none. Of a run
  /// that never trained, all is of its newest evaluation.
  std::string metric;
  std::optional<double> last;
  /// By `metric_direction`. Of the config's metric that of the checkpoint which is the best one;
  /// else of a metrics file up to 1 MB.
  std::optional<double> best;
  double age = 0;  ///< Seconds since it wrote something.
};

/// `checkpoints/metric` of a config, else `stop_when/metric`; empty when it names neither.
std::string metric_of(const Value& config);

/// Whether this is the folder of a run, whole or not.
bool is_run(const std::string& root);

/// Reads the newest config, the end of the metrics and the names of the checkpoints: a few pages,
/// however long the run. Throws nothing for a run that is damaged.
RunSummary summarize_run(const std::string& root);

/// The runs in `logs/`, those with the newest start first; with `with_debug` those in
/// `logs/debug_runs/` as well. Throws Error when the folder cannot be read.
std::vector<RunSummary> list_runs(const std::string& logs, bool with_debug);

}  // namespace stepop
