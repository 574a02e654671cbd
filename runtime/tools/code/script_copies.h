#pragma once

#include <string>
#include <vector>

#include "runtime/core/value/value.h"

namespace stepop {

// A run keeps copies of the scripts of its callbacks, in
// `code/scripts/<evaluation>/<callback>/<script>`. The scripts themselves run while they are there:
// they may need files beside them.

/// Copies the scripts that a config names, with absolute paths, into the folder of its run. One
/// that cannot be read is left out.
void save_scripts(const Value& config, const std::string& run);

/// Lets a config name the run's copies of scripts that are gone. Returns a line on each.
std::vector<std::string> take_script_copies(Value& config, const std::string& run);

}  // namespace stepop
