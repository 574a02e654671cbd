#pragma once

#include <chrono>
#include <string>

#include "runtime/tools/cli/arguments.h"
#include "runtime/train/distributed/world.h"

namespace stepop {

/// How a start ended.
struct StartEnd {
  int exit_code = 0;
  /// The folder of the run, when the training is to go on at once with the change of its config
  /// that is there; else empty.
  std::string changed_run = {};
};

/// One start: finds checkpoint, config and code, builds the session, tries it, and trains or
/// evaluates in the run's folder. `begin` is when the process began, from which `max_time` counts;
/// `notice` a warning for the log. `has_begun` becomes true once nothing can be wrong any more with
/// config and checkpoint, also where this throws; `root` the run's folder, as soon as there is one.
/// All processes of `world` call it; rank 0 alone reads configs and checkpoints, and writes.
StartEnd run_start(const Arguments& arguments, std::chrono::steady_clock::time_point begin,
                   const std::string& notice, World& world, bool& has_begun, std::string& root);

}  // namespace stepop
