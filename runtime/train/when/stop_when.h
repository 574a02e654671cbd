#pragma once

#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "runtime/core/base/ordered_map.h"
#include "runtime/core/formats/state.h"
#include "runtime/train/when/duration.h"
#include "runtime/train/when/logged_metric.h"
#include "runtime/train/when/trigger.h"

namespace stepop {

/// Early stopping: `stop_when: {metric: validation/eval_op/accuracy/accuracy, patience: 5e, mode:
/// max, min_delta: 0}`. The training ends when the metric has not become better for `patience`.
///
/// Only a new value of the metric ends it, so a patience of 5 epochs with an evaluation every
/// second epoch ends after 6. NaN is never better. A value is better when it is more than
/// `min_delta` above the best one (below it with `mode: min`).
class StopWhen {
 public:
  /// Never ends a training.
  StopWhen() = default;
  /// Reads `stop_when`, which may be missing. Throws UsageError with the place of a mistake.
  StopWhen(const Config& config, int64_t steps_per_epoch);

  bool is_given() const { return !metric_.empty(); }
  const std::string& metric() const { return metric_; }

  /// Takes the numbers of a log or an evaluation by their full names; does nothing when the metric
  /// is not among them. Observing the same event twice changes nothing.
  void observe(const OrderedMap<double>& scalars, const Elapsed& now);

  /// Whether the training should end.
  bool is_over() const;
  /// Why it should, once it should: `validation/eval_op/accuracy/accuracy has not
  /// been better than 0.9833 (step 230) for 5 epochs`.
  std::optional<std::string> reason() const;

  /// Throws UnknownMetric, with the nearest of the known names, when the metric was never observed
  /// and nothing that is open may give it. For before a training, and the end of its first
  /// evaluation.
  void check_observed(const LoggedNames& names) const;

  /// What must survive a restart; nothing when `stop_when` is not given, or nothing was observed.
  State save() const;
  /// Resumes from a state, unless it is of another metric or mode: that begins anew, as does an
  /// empty state. Throws Error for a state that `save` did not write.
  void load(const State& state);

 private:
  bool is_better(double value) const;
  /// How long the best value stood when the last one came, in the unit of the patience.
  double waited() const;
  std::string identity() const;

  Config config_;
  int64_t steps_per_epoch_ = 1;
  std::string metric_;
  bool more_is_better_ = true;
  double min_delta_ = 0;
  Duration patience_;

  double best_ = std::numeric_limits<double>::quiet_NaN();  ///< NaN before the first number.
  Elapsed since_;  ///< When the best value came; when the first NaN came, without one.
  std::optional<Elapsed> last_;  ///< When the last value came.
};

}  // namespace stepop
