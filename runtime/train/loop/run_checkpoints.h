#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>

#include "runtime/core/base/ordered_map.h"
#include "runtime/core/log/console.h"
#include "runtime/core/measure/profile.h"
#include "runtime/train/checkpoint/checkpoint_folder.h"
#include "runtime/train/checkpoint/checkpoint_writer.h"
#include "runtime/train/run/run_directory.h"
#include "runtime/train/when/settings.h"

namespace stepop {

/// The checkpoints of a run that is trained: written behind the loop, linked as `latest` and
/// `best`, and removed when they are not to be kept.
class RunCheckpoints {
 public:
  /// `before_write` is called in the writer's thread before each file, as CheckpointWriter does.
  /// The others must outlive this; `profile` may be null. Of several processes one writes; the
  /// others only keep count.
  RunCheckpoints(const RunDirectory& directory, const Settings& settings, Console& console,
                 Profile* profile, CheckpointWriter::BeforeWrite before_write, bool writes = true);

  /// Begins at `step`: reads what the starts before this one logged of the metric by which
  /// checkpoints are kept, and brings the folder in order. Returns whether there is a checkpoint of
  /// that step.
  bool begin(int64_t step);

  /// There is a checkpoint of that step, which another process wrote.
  void note(int64_t step) { last_step_ = step; }

  /// The step of the newest checkpoint that the run has, or is writing; -1 when there is none.
  int64_t last_step() const { return last_step_; }

  /// Notes what the metric, if it is among the scalars, was at `step`.
  void observe(int64_t step, const OrderedMap<double>& scalars);
  /// Notes that the evaluation of `step` ended without the metric, since a callback failed: its
  /// checkpoint is kept, as it may be the best one.
  void keep_unjudged(int64_t step);
  /// Whether the metric, if the config names one, was ever logged.
  bool knows_metric() const { return retention_.metric.empty() || !metric_.empty(); }

  /// Begins to write, and returns the path to be; the one before must have been waited for. Throws
  /// as CheckpointWriter does, as do the following.
  std::string save(const Checkpoint& checkpoint);
  /// Between two steps: throws what a write failed with, reports one that is done.
  void check();
  void wait();
  /// Waits, sets `latest` and `best`, and removes what is not kept.
  void update();

 private:
  void report_written();

  const RunDirectory& directory_;
  const Retention& retention_;
  /// The name of the evaluation of which the metric is a label or what a callback gives.
  const std::optional<std::string> evaluation_;
  Console& console_;
  Profile* const profile_;
  const bool writes_;
  CheckpointFolder folder_;
  MetricByStep metric_;         ///< Over all starts.
  std::set<int64_t> unjudged_;  ///< The same: steps whose evaluation lacks the metric.
  int64_t last_step_ = -1;
  std::optional<ThreadSpan> write_;  ///< Of the writer's thread.
  CheckpointWriter writer_;          // last: its thread uses the others
};

}  // namespace stepop
