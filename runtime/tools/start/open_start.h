#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "runtime/core/log/console.h"
#include "runtime/tools/cli/arguments.h"
#include "runtime/tools/start/checkpoint_choice.h"
#include "runtime/tools/start/run_source.h"
#include "runtime/train/distributed/world.h"
#include "runtime/train/run/run_lock.h"

namespace stepop {

/// What a start found before anything of it was built: the same in all processes, but for the
/// source and the lock, which rank 0 alone has.
struct OpenedStart {
  std::string time;       ///< The time of this start, in the names of its files.
  bool is_resuming;       ///< In the run of -p, not in a new one.
  RunSource source = {};  ///< Empty in other ranks than 0.
  RunConfig run = {};     ///< The config, and the user's own code that it named.
  std::string name = {};  ///< The end of the name of the run's folder.
  std::optional<ChosenCheckpoint> checkpoint = {};
  std::unique_ptr<RunLock> lock = {};  ///< The lock of the run of -p, if it is to be trained.
  /// The last sign of life of the training before.
  std::optional<std::filesystem::file_time_type> run_ended = {};

  bool has_own_code() const { return run.config.peek("code") != nullptr; }
};

/// Finds the run, its checkpoint, the config and the code, and gives them to all processes of
/// `world`. `known` is the source of these arguments, where it was looked for already. Locks the
/// run that is to be trained, so that nobody else adds to it from here on. Throws UsageError for
/// arguments that do not go together, Error for what cannot be read.
OpenedStart open_start(const Arguments& arguments, std::optional<RunSource> known, World& world,
                       Console& console);

/// Locks the run in `directory` for a training.
void lock_run(OpenedStart& opened, const RunDirectory& directory);

}  // namespace stepop
