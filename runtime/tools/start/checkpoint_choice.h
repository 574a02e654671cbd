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
#include "runtime/tools/start/run_source.h"
#include "runtime/train/checkpoint/checkpoint.h"
#include "runtime/train/checkpoint/checkpoint_folder.h"
#include "runtime/train/run/run_directory.h"
#include "runtime/train/when/checkpoint_filter.h"

namespace stepop {

/// The checkpoint from which a start begins. It is read when it is chosen, since a concurrent
/// training may remove it a moment later.
struct ChosenCheckpoint {
  std::string path;
  Checkpoint checkpoint;
};

/// The checkpoint that `-c` picks, or else the newest undamaged checkpoint of `-p`; nothing for a
/// fresh run. Throws Error for a damaged checkpoint, UsageError for a missing one.
std::optional<ChosenCheckpoint> choose_checkpoint(const Arguments& arguments,
                                                  const RunSource& source, Console& console);

/// The checkpoints of a run in the order of their steps, to evaluate each.
class CheckpointQueue {
 public:
  using Deadline = std::chrono::steady_clock::time_point;

  /// The queue has the checkpoints that `filter` takes. With `waits`, it also has checkpoints that
  /// a training writes before the deadline; a checkpoint that is written again, after the training
  /// went back, comes again. `passed` is called for each rejected checkpoint, in its turn.
  CheckpointQueue(const RunDirectory& run, const CheckpointFilter& filter, bool waits,
                  Deadline deadline, std::function<void(int64_t step)> passed = {});

  /// Leaves out the checkpoints up to `step` that exist now.
  void pass_over(int64_t step);

  /// Whether the filter takes the checkpoint of `step`; nothing while a condition's metric is
  /// missing.
  std::optional<bool> takes(int64_t step) const;

  /// The next checkpoint; nothing at the end. With `waits`, a checkpoint whose condition has no
  /// metric yet is waited for. Damaged checkpoints are skipped with a warning, and checkpoints that
  /// the training has removed meanwhile without one. Throws Interrupted when a signal arrives
  /// during the wait.
  std::optional<ChosenCheckpoint> next(Console& console);

 private:
  bool is_new(int64_t step);
  std::optional<ChosenCheckpoint> look(Console& console);

  CheckpointFolder folder_;
  std::string metrics_;
  const CheckpointFilter& filter_;
  std::map<int64_t, std::filesystem::file_time_type> seen_;  ///< The files' write times.
  bool waits_;
  Deadline deadline_;
  std::function<void(int64_t step)> passed_;
  bool has_said_so_ = false;
};

}  // namespace stepop
