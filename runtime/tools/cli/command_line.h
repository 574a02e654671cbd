#pragma once

#include <string>
#include <vector>

#include "runtime/core/config/value.h"
#include "runtime/tools/cli/arguments.h"

namespace stepop {

/// Reads the words of a command line. Throws UsageError for a stray word (with a command: for more
/// words, or fewer, than it takes), a flag without its value, an unknown flag of one letter.
Arguments parse_arguments(const std::vector<std::string>& words);

/// The value that `text` is for the key `path` of a config: YAML in one line. Throws UsageError.
Value override_value(const std::string& path, const std::string& text);

}  // namespace stepop
