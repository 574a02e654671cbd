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
#include "runtime/train/when/training_length.h"
#include "runtime/train/when/trigger.h"

namespace stepop {

/// An op and when it is due.
struct ScheduledOp {
  OpName name;
  Trigger when;
  ImageEncoding images = {};  ///< For a log op: how its images become files.
  Turn turn = {};             ///< For a train op: the steps of its stage.
  bool is_default = false;    ///< The config does not name it, so an iterator may lack it.
  /// The config's key that says when the op is due, `log_ops/1/when`; empty for none.
  std::string place = {};

  /// For a train op: whether the op is due in the step after `step` complete steps. Only the step
  /// number decides, so a resumed run makes the same decision.
  bool is_due_in_step_after(int64_t step) const {
    return turn.has(step) &&
           (when.is_due({.step = step}, {.step = step + 1}) || (step == 0 && when.at_start()));
  }

  /// For a train op: the number of complete steps after the first step in which the op is due. The
  /// search starts with the step after `step` complete steps; returns `limit` when no step before
  /// it is due.
  int64_t first_time(int64_t step, int64_t limit) const;
};

/// What a training logs about itself: `telemetry: {active: true, weights: 1e, gradients: 500,
/// parameters: "^encoder"}`.
struct TelemetrySettings {
  bool is_active = true;
  Trigger weights;             ///< When histograms of weights are logged; never by default;
  Trigger gradients;           ///< the same for gradients, in steps or epochs.
  NamePattern parameters{""};  ///< The parameters whose histograms are logged.
};

/// Reads `accumulate`, `batch_size`, `num_epochs` and `num_steps`; see Settings.
TrainingLength read_training_length(const Config& config, int64_t batches_per_epoch, bool train,
                                    int64_t processes = 1);

/// When things happen: the runtime's own keys. They are read in one place and in every mode, so
/// that no mode reports another mode's key as unknown.
struct Settings {
  /// `batches_per_epoch` defines epochs; 1 when nothing is trained. With `debug`, the limits of
  /// `debug/` hold. `own_log_ops` are the iterator's log ops, in the format of Iterator::log_ops.
  Settings(const Config& config, int64_t batches_per_epoch, bool train, bool debug,
           const OrderedMap<std::string>& own_log_ops = {}, int64_t processes = 1);

  /// The steps after `step` until every train op was due; `num_steps` when an op is never due.
  int64_t steps_until_all_trained(int64_t step) const;

  int64_t accumulate = 1;
  bool splits_batches = false;  ///< `on_out_of_memory: split`
  int64_t steps_per_epoch = 1;
  int64_t examples_per_step = 1;  ///< Of all processes.
  int64_t num_steps = 0;          ///< Where the training ends.
  /// Where this start of the training ends, to be resumed later.
  int64_t stop_at = std::numeric_limits<int64_t>::max();
  int64_t debug_steps = 0;  ///< The number of steps of a run with `debug`.
  int64_t num_epochs = 0;   ///< `num_steps` in epochs, rounded up.
  /// The time limit of one start, by the clock; the training then ends by itself.
  double max_seconds = std::numeric_limits<double>::infinity();

  /// In the order within a step. With stages, an op appears once for each stage that has it.
  std::vector<ScheduledOp> train_ops;
  std::vector<ScheduledOp> log_ops;
  /// When the values returned by train ops and the telemetry are logged without a log op: with the
  /// default log ops, some of which an iterator may lack, and with `log_ops: []`.
  Trigger plain_log;

  Trigger checkpoint;
  bool checkpoint_zero = false;
  Retention retention;

  Trigger swa;  ///< After which steps a snapshot of the weights is taken.

  TelemetrySettings telemetry;
  std::vector<std::shared_ptr<Sink>> integrations;  ///< The active integrations.

  std::vector<EvaluationSettings> evaluations;
  /// Without a training: evaluates every checkpoint; `eval_forever` also evaluates the checkpoints
  /// that a training will still write.
  bool eval_all = false;
  bool eval_forever = false;
  CheckpointFilter eval_filter;  ///< Which checkpoints are evaluated.
  /// In a training: how many steps it may be ahead of `eval_forever`; 0 for no limit.
  int64_t run_ahead = 0;
};

/// The ops of one split that a config calls, grouped by kind.
struct DueOps {
  std::string split;
  std::vector<std::string> train, log, eval;

  /// Whether the ops see batches of a training; an evaluation reads its own batches.
  bool is_in_training() const { return !train.empty() || !log.empty(); }
};

/// Every op that the config will call, in a training or in an evaluation without a training.
std::vector<DueOps> due_ops(const Settings& settings, bool train);

/// Reads which checkpoints stay, by default all of them:
/// `checkpoints: {keep_last: 2, keep_best: 1, metric: validation/eval_op/accuracy/accuracy,
/// mode: max, keep_every: 10e}`. `keep_every` is a trigger in steps or epochs: the first checkpoint
/// of each of its periods stays. Throws UsageError, with the place, for settings that make no
/// sense.
Retention read_retention(const Config& config, int64_t steps_per_epoch);

}  // namespace stepop
