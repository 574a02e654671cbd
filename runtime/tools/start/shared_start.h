#pragma once

#include <string>

#include "runtime/tools/cli/arguments.h"
#include "runtime/tools/start/run_source.h"
#include "runtime/train/distributed/world.h"

namespace stepop {

/// The facts about a start that rank 0 found, for all ranks.
struct SharedStart {
  std::string time = {};  ///< The time in the names of the start's files.
  std::string git = {};
};
SharedStart share_start(World& world, const SharedStart& of_root);

/// Gives every process the config that rank 0 has read, and the code that it names. Throws
/// UsageError when a process's machine has different config files or code.
void share_config(World& world, const Arguments& arguments, RunSource& source, RunConfig& config);

}  // namespace stepop
