#pragma once

#include <string>
#include <vector>

#include "runtime/cli/arguments.h"

namespace stepop {

/// Reads the words of a command line. Throws UsageError for a stray word (with a command: for more
/// words, or fewer, than it takes), a flag without its value, an unknown flag of one letter.
Arguments parse_arguments(const std::vector<std::string>& words);

}  // namespace stepop
