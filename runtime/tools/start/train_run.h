#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "runtime/core/log/console.h"
#include "runtime/train/checkpoint/progress.h"
#include "runtime/train/run/run_directory.h"
#include "runtime/train/run/run_lock.h"
#include "runtime/train/session/session.h"

namespace stepop {

/// The data that a training needs besides its config.
struct TrainingStart {
  std::string time;  ///< The time of this start.
  std::string git;
  std::chrono::steady_clock::time_point deadline;
  bool profiles = false;       ///< --profile
  bool takes_changes = false;  ///< As in TrainingLoop::Start.
};

/// How a training ended.
struct TrainingEnd {
  int exit_code = 0;
  bool is_changed = false;            ///< The training must resume at once, with a changed config.
  std::optional<Rewind> rewind = {};  ///< The same, from the last checkpoint.
};

/// Trains a run that `lock` locks, marks the lock as ended when the training ends, and reports how
/// it ended and how to resume. Throws the same errors as TrainingLoop::run.
TrainingEnd train_run(Console& console, const RunDirectory& directory, Session& session,
                      const TrainingStart& start, RunLock* lock);

}  // namespace stepop
