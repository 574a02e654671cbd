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

/// The checkpoints of a training: written in the background, linked as `latest` and `best`, and
/// removed when they are not to be kept.
class RunCheckpoints {
 public:
  /// `before_write` is called in the writer's thread before each file, as in CheckpointWriter. The
  /// other arguments must outlive this; `profile` may be null. Among several processes only one
  /// writes; the others only count.
  RunCheckpoints(const RunDirectory& directory, const Settings& settings, Console& console,
                 Profile* profile, CheckpointWriter::BeforeWrite before_write, bool writes = true);

  /// Begins at `step`: reads the values of the retention metric that earlier starts logged, and
  /// tidies the folder. Returns whether the checkpoint of that step exists.
  bool begin(int64_t step);

  /// Records that another process wrote the checkpoint of that step.
  void note(int64_t step) { last_step_ = step; }

  /// The step of the newest checkpoint that exists or is being written; -1 when there is none.
  int64_t last_step() const { return last_step_; }

  /// The size of the last file that this start wrote; 0 before.
  int64_t written_bytes() const { return written_bytes_; }

  /// Records the metric's value at `step`, if the metric is among the scalars. Warns of the first
  /// NaN.
  void observe(int64_t step, const OrderedMap<double>& scalars);
  /// Records that the evaluation of `step` ended without the metric, because a callback failed: the
  /// checkpoint is kept, as it may be the best.
  void keep_unjudged(int64_t step);
  /// Whether the metric was ever logged; true if the config names none.
  bool knows_metric() const { return retention_.metric.empty() || !metric_.empty(); }

  /// Starts to write a checkpoint, and returns its future path; the previous write must be
  /// complete. Throws the same errors as CheckpointWriter, as do the following functions.
  std::string save(const Checkpoint& checkpoint);
  /// Called between two steps: throws the error of a failed write, reports a finished write.
  void check();
  void wait();
  /// Waits for the write, sets `latest` and `best`, and removes checkpoints that are not to be
  /// kept.
  void update();

 private:
  void report_written();

  const RunDirectory& directory_;
  const Retention& retention_;
  /// The name of the evaluation whose label or callback yields the metric.
  const std::optional<std::string> evaluation_;
  Console& console_;
  Profile* const profile_;
  const bool writes_;
  CheckpointFolder folder_;
  MetricByStep metric_;         ///< Over all starts.
  std::set<int64_t> unjudged_;  ///< Over all starts: steps whose evaluation lacks the metric.
  bool is_nan_reported_ = false;
  int64_t last_step_ = -1;
  int64_t written_bytes_ = 0;
  std::optional<ThreadSpan> write_;  ///< The span of the writer's thread.
  CheckpointWriter writer_;          // last, because its thread uses the other members
};

}  // namespace stepop
