#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/core/config/value.h"
#include "runtime/tools/cli/arguments.h"
#include "runtime/tools/cli/command.h"

namespace stepop {

/// A command line that was read; without a command it trains or evaluates.
struct CommandLine {
  Arguments arguments;
  std::unique_ptr<Command> command;  ///< With the values of its own flags.
};

/// Reads the words of a command line. Throws UsageError, below which the help of the command is to
/// be shown, for a stray word (with a command: for more words, or fewer, than it takes), a flag
/// without its value, an unknown flag of one letter, and for what the command does not take.
CommandLine parse_command_line(const std::vector<std::string>& words);

/// The value that `text` is for the key `path` of a config: YAML in one line. Throws UsageError.
Value override_value(const std::string& path, const std::string& text);

}  // namespace stepop
