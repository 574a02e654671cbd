#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/core/value/value.h"
#include "runtime/tools/cli/arguments.h"
#include "runtime/tools/cli/command.h"

namespace stepop {

/// A parsed command line; without a command, it trains or evaluates.
struct CommandLine {
  Arguments arguments;
  std::unique_ptr<Command> command;  ///< Has the values of its own flags.
};

/// Parses the words of a command line. Throws UsageError, after which the help of the command
/// should be shown, for a stray word (with a command: too many or too few words), a flag without
/// its value, an unknown flag of one letter, and for flags and keys that the command does not take.
CommandLine parse_command_line(const std::vector<std::string>& words);

/// Parses `text` as the value of the config key `path`: YAML in one line. Throws UsageError.
Value override_value(const std::string& path, const std::string& text);

}  // namespace stepop
