#pragma once

#include <string>

#include "runtime/cli/commands.h"
#include "runtime/run/run_directory.h"

namespace stepop {

/// Throws UsageError for -b and --path/key, which a command without a config has no use for.
/// `takes` is what it takes: `the folder of a run`.
void refuse_config(const Arguments& arguments, const std::string& takes);

/// The run in the folder that was given to a command; throws UsageError when it is none.
RunDirectory open_run(const Arguments& arguments, const std::string& root);

}  // namespace stepop
