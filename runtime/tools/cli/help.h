#pragma once

#include <string>
#include <vector>

#include "runtime/tools/cli/command.h"

namespace stepop {

/// The flags that only this command takes, for the help text; they set nothing.
std::vector<Flag> own_flags(const CommandInfo& command);

/// The text of `--help`; for a command, its purpose, its flags and an example.
std::string help_text();
std::string help_text(const CommandInfo& command);

/// The text of `--version`: stepop, LibTorch, HDF5.
std::string version_text();

}  // namespace stepop
