#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runtime/core/log/console.h"
#include "runtime/tools/cli/run_source.h"
#include "runtime/train/checkpoint/checkpoint.h"
#include "runtime/train/checkpoint/checkpoint_folder.h"
#include "runtime/train/run/run_directory.h"
#include "runtime/train/when/checkpoint_filter.h"

namespace stepop {

/// A checkpoint that a start begins from. It is read when it is chosen: a training beside us may
/// remove it a moment later.
struct ChosenCheckpoint {
  std::string path;
  Checkpoint checkpoint;
};

/// The checkpoint that `-c` picks, else the newest one of `-p` that is not damaged; none for a
/// fresh run. Throws Error for one that is damaged, UsageError for one that is not there.
std::optional<ChosenCheckpoint> choose_checkpoint(const Arguments& arguments,
                                                  const RunSource& source, Console& console);

/// The checkpoints of a run one after the other, by their steps, for evaluating each.
class CheckpointQueue {
 public:
  using Deadline = std::chrono::steady_clock::time_point;

  /// Those that `filter` takes. With `waits`, also those that a training is going to write, until
  /// the deadline; one that is written anew, by a training that went back, comes again.
  /// `passed` is called for each that it does not take, once those before it came.
  CheckpointQueue(const RunDirectory& run, const CheckpointFilter& filter, bool waits,
                  Deadline deadline, std::function<void(int64_t step)> passed = {});

  /// Those that are there now up to `step` are not to come.
  void pass_over(int64_t step);

  /// Whether the filter takes the checkpoint of `step`; nothing while the metric of a condition is
  /// not there.
  std::optional<bool> takes(int64_t step) const;

  /// The next one; none when there is none. Of one whose condition has no metric yet, it waits for
  /// that, with `waits`. One that is damaged is passed over with a warning, one
  /// that the training has removed meanwhile without. Throws Interrupted when a signal arrives
  /// while it waits.
  std::optional<ChosenCheckpoint> next(Console& console);

 private:
  bool is_new(int64_t step);
  std::optional<ChosenCheckpoint> look(Console& console);

  CheckpointFolder folder_;
  std::string metrics_;
  const CheckpointFilter& filter_;
  std::map<int64_t, std::filesystem::file_time_type> seen_;  ///< When those were written.
  bool waits_;
  Deadline deadline_;
  std::function<void(int64_t step)> passed_;
  bool has_said_so_ = false;
};

}  // namespace stepop
