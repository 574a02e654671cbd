#pragma once

#include <chrono>
#include <string>

#include "runtime/core/log/console.h"
#include "runtime/train/loop/session.h"
#include "runtime/train/run/run_directory.h"
#include "runtime/train/run/run_lock.h"

namespace stepop {

/// What a training needs beside its config.
struct TrainingStart {
  std::string time;  ///< Of this start.
  std::string git;
  std::chrono::steady_clock::time_point deadline;
  bool profiles = false;       ///< --profile
  bool takes_changes = false;  ///< As in TrainingLoop::Start.
};

/// How a training ended.
struct TrainingEnd {
  int exit_code = 0;
  bool is_changed = false;  ///< It is to go on at once, with a changed config.
};

/// Trains a run that is locked by `lock`, which is marked as ended when the training is, and says
/// how it ended and how to resume. Throws as TrainingLoop::run.
TrainingEnd train_run(Console& console, const RunDirectory& directory, Session& session,
                      const TrainingStart& start, RunLock* lock);

}  // namespace stepop
