#pragma once

#include <string>
#include <vector>

#include "runtime/tools/cli/command.h"

namespace stepop {

/// The flags that a command alone takes, for a text: they set nothing.
std::vector<Flag> own_flags(const CommandInfo& command);

/// What `--help` prints; with a command what it is for, its flags and an example.
std::string help_text();
std::string help_text(const CommandInfo& command);

/// What `--version` prints: stepop, LibTorch, HDF5.
std::string version_text();

}  // namespace stepop
