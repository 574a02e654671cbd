#pragma once

#include <memory>
#include <string>

#include "runtime/core/log/console.h"
#include "runtime/core/measure/tensor_memory.h"
#include "runtime/tools/cli/arguments.h"
#include "runtime/tools/code/crash_message.h"
#include "runtime/tools/start/open_start.h"
#include "runtime/train/distributed/world.h"
#include "runtime/train/run/run_directory.h"
#include "runtime/train/session/session.h"

namespace stepop {

/// What a start has built and restored, in memory alone.
struct BuiltStart {
  std::unique_ptr<Session> session;
  std::unique_ptr<CrashMessage> crash = {};  ///< Says where the session was.
  std::string weights = {};                  ///< What init_from loaded, for the log.
  std::string config = {};  ///< The file of the run that has the config, and what differs from it.
  /// Where the config differs from the checkpoint's, or without one from the last start's.
  std::string changes = {};
  /// Where the machine differs from the checkpoint's.
  std::string machine = {};
  bool is_from_elsewhere = false;  ///< The checkpoint at the beginning is not the run's own.
};

/// Builds the session, restores the checkpoint and tries each op: all that can be wrong is found
/// here, before there is a folder. The checkpoint of `opened` loses its tensors, which are as large
/// as the session.
BuiltStart build_start(const Arguments& arguments, OpenedStart& opened, World& world,
                       Console& console);

/// `--check`: shows what each op needs, and whether a second training gives the same. Returns the
/// exit status. `memory` counts since before the session was built.
int check_start(const Arguments& arguments, const OpenedStart& opened, const BuiltStart& built,
                TensorMemory& memory, Console& console);

/// The lines in which a config differs from the session's.
std::string differences_to(const std::string& yaml, const Session& session);

/// A start that follows from the command line in three steps, each of which needs what the one
/// before it found: open_start, build_start, begin_start. All processes of `world` take them; rank
/// 0 alone reads configs and checkpoints, and writes.
struct Start {
  const Arguments& arguments;
  World& world;
  Console& console;
  OpenedStart opened;
  BuiltStart built;
};

/// Saves weights that came from elsewhere: should this start be killed early, the next one finds
/// them in the run.
void save_beginning(const BuiltStart& built, const RunDirectory& directory);

}  // namespace stepop
