#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "runtime/core/base/name_pattern.h"
#include "runtime/core/config/config.h"
#include "runtime/core/log/sink.h"
#include "runtime/core/pictures/image_file.h"
#include "runtime/train/checkpoint/retention.h"
#include "runtime/train/when/checkpoint_filter.h"
#include "runtime/train/when/evaluation_settings.h"
#include "runtime/train/when/op_name.h"
#include "runtime/train/when/stages.h"
#include "runtime/train/when/trigger.h"

namespace stepop {

/// An op and when it is due.
struct ScheduledOp {
  OpName name;
  Trigger when;
  ImageEncoding images = {};  ///< Of a log op: how what it shows becomes files.
  Turn turn = {};             ///< Of a train op: the steps of its stage.
  bool is_default = false;    ///< The config does not name it, so an iterator may lack it.
  /// The key of the config that says when, `log_ops/1/when`; empty for none.
  std::string place = {};

  /// Of a train op: whether it is due in the step that follows `step` complete ones. Only the step
  /// decides, so a run that resumes does the same.
  bool is_due_in_step_after(int64_t step) const {
    return turn.has(step) &&
           (when.is_due({step, 0}, {step + 1, 0}) || (step == 0 && when.at_start()));
  }

  /// Of a train op: how many steps are complete after the first one in which it is due, from the
  /// one behind `step` complete ones; `limit` when there is none until there.
  int64_t first_time(int64_t step, int64_t limit) const;
};

/// What a training tells of itself: `telemetry: {active: true, weights: 1e, gradients: 500,
/// parameters: "^encoder"}`.
struct TelemetrySettings {
  bool is_active = true;
  Trigger weights;             ///< When they are counted, never by default;
  Trigger gradients;           ///< the same of gradients, by steps or epochs.
  NamePattern parameters{""};  ///< Of those that are counted.
};

/// What a config says of when things happen: the runtime's own keys, read in one place and in every
/// mode, so that none of them is ever unknown.
struct Settings {
  /// `batches_per_epoch` gives epochs their meaning; 1 when nothing is trained. With `debug`, the
  /// limits of `debug/` hold. `own_log_ops` are those of the iterator, as Iterator::log_ops has
  /// them.
  Settings(const Config& config, int64_t batches_per_epoch, bool train, bool debug,
           const OrderedMap<std::string>& own_log_ops = {});

  /// The steps after `step` until every train op was due; `num_steps` when one is never.
  int64_t steps_until_all_trained(int64_t step) const;

  int64_t accumulate = 1;
  int64_t steps_per_epoch = 1;
  int64_t num_steps = 0;  ///< Where the training ends.
  /// Where a start ends, to be resumed.
  int64_t stop_at = std::numeric_limits<int64_t>::max();
  int64_t debug_steps = 0;  ///< How many steps a run with `debug` makes.
  int64_t num_epochs = 0;   ///< The same in epochs, rounded up.
  /// By the clock, of one start: after it the training ends by itself.
  double max_seconds = std::numeric_limits<double>::infinity();

  /// In the order of each step. With stages, an op is there once for each stage that has it.
  std::vector<ScheduledOp> train_ops;
  std::vector<ScheduledOp> log_ops;
  /// When what train ops returned and the telemetry are logged where no log op may be due: with the
  /// default log ops, of which an iterator may lack some, and with `log_ops: []`.
  Trigger plain_log;

  Trigger checkpoint;
  bool checkpoint_zero = false;
  Retention retention;

  Trigger swa;  ///< After which steps a snapshot of the weights is taken.

  TelemetrySettings telemetry;
  std::vector<std::shared_ptr<Sink>> integrations;  ///< Those that are active.

  std::vector<EvaluationSettings> evaluations;
  /// Without a training: every checkpoint is evaluated; and those that a training is going to
  /// write.
  bool eval_all = false;
  bool eval_forever = false;
  CheckpointFilter eval_filter;  ///< Which of them.
  /// Of a training: how many steps it may be ahead of the evaluations of `eval_forever`; 0 for any.
  int64_t run_ahead = 0;
};

/// The ops of one split that a config calls, by the kind of each.
struct DueOps {
  std::string split;
  std::vector<std::string> train, log, eval;

  /// Whether they see batches of a training; an evaluation has batches of its own.
  bool is_in_training() const { return !train.empty() || !log.empty(); }
};

/// Every op that the config will ever call, in a training or in an evaluation without one.
std::vector<DueOps> due_ops(const Settings& settings, bool train);

/// Reads which checkpoints stay, by default all:
/// `checkpoints: {keep_last: 2, keep_best: 1, metric: validation/eval_op/accuracy/accuracy,
/// mode: max, keep_every: 10e}`. `keep_every` is a trigger in steps or epochs: the first checkpoint
/// of each of its periods stays. Throws UsageError, with the place, for what makes no sense.
Retention read_retention(const Config& config, int64_t steps_per_epoch);

}  // namespace stepop
