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
/// max, min_delta: 0}`. The training ends when the metric has not become better for `patience`: a
/// plain number is so many values of it in a row, as in Keras and Lightning; `5e`, `300s` and `30m`
/// are spans.
///
/// The training only ends when a new value of the metric arrives: a patience of 5 epochs with an
/// evaluation every second epoch ends after 6 epochs. NaN is never better. A value is better when
/// it exceeds the best value by more than `min_delta` (is lower by more than that with `mode:
/// min`).
class StopWhen {
 public:
  /// Never ends a training.
  StopWhen() = default;
  /// Reads `stop_when`, which may be missing. Throws UsageError, with the place, for a bad value.
  StopWhen(const Config& config, int64_t steps_per_epoch);

  bool is_given() const { return !metric_.empty(); }
  const std::string& metric() const { return metric_; }

  /// Takes the numbers of a log or an evaluation by their full names. Does nothing when the metric
  /// is not among them. Observing the same event twice changes nothing.
  void observe(const OrderedMap<double>& scalars, const Elapsed& now);

  /// Whether the training should end.
  bool is_over() const;
  /// Why the training should end, once `is_over()`: `validation/eval_op/accuracy/accuracy has not
  /// been better than 0.9833 (step 230) for 5 epochs`.
  std::optional<std::string> reason() const;

  /// The patience, if it counts values.
  std::optional<int64_t> patience_in_values() const;
  /// The patience, if it is a span.
  std::optional<Duration> patience_as_span() const;

  /// The metric, while it was never observed.
  std::vector<WatchedNumber> watched_numbers() const;

  /// The state for a checkpoint; empty without `stop_when`, or before the first observed value.
  State save() const;
  /// Resumes from a state. A state of another metric or mode, or an empty state, starts again from
  /// nothing. Throws Error for a state that `save` did not write.
  void load(const State& state);

 private:
  bool is_better(double value) const;
  bool counts_values() const { return patience_in_values_ > 0 && !counted_steps_before_; }
  /// How old the best value was when the last value came, in the unit of the patience.
  double waited() const;
  std::string identity() const;

  Config config_;
  int64_t steps_per_epoch_ = 1;
  std::string metric_;
  bool more_is_better_ = true;
  double min_delta_ = 0;
  Duration patience_;               ///< In steps where it is a plain number.
  int64_t patience_in_values_ = 0;  ///< 0 for a span.
  /// In a run of 0.1.0, where a plain number was steps.
  bool counted_steps_before_ = false;

  double best_ = std::numeric_limits<double>::quiet_NaN();  ///< NaN before the first number.
  Elapsed since_;  ///< When the best value came, or the first NaN where there is no best value.
  std::optional<Elapsed> last_;  ///< When the last value came.
  int64_t not_better_ = 0;       ///< Values since the best one.
};

}  // namespace stepop
