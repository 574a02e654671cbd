#pragma once

#include <string>

#include "runtime/tools/cli/arguments.h"
#include "runtime/tools/cli/run_source.h"
#include "runtime/train/distributed/world.h"

namespace stepop {

/// What rank 0 has found out about a start, for all.
struct SharedStart {
  std::string time = {};  ///< By which the start names what it makes.
  std::string git = {};
};
SharedStart share_start(World& world, const SharedStart& of_root);

/// Gives every process the config that rank 0 has read, and the code that it names. Throws
/// UsageError when the config files, or the code, of a process's machine are others.
void share_config(World& world, const Arguments& arguments, const RunSource& source,
                  RunConfig& config);

}  // namespace stepop
