#pragma once

#include <chrono>
#include <string>

#include "runtime/tools/start/build_start.h"
#include "runtime/tools/start/train_run.h"
#include "runtime/train/run/run_directory.h"

namespace stepop {

/// Takes the folder of -p, or makes one, and locks it for a training. After that nothing can be
/// wrong any more with config and checkpoint.
RunDirectory begin_start(Start& start);

/// Trains or evaluates in the run's folder. `process_begin`: `max_time` counts from there. `notice`
/// is a warning for the log, empty for none. An error of rank 0 says how to resume, and is in the
/// run's log.
TrainingEnd carry_out(Start& start, const RunDirectory& directory,
                      std::chrono::steady_clock::time_point process_begin,
                      const std::string& notice);

}  // namespace stepop
