#pragma once

#include <string>
#include <vector>

#include "runtime/core/value/value.h"

namespace stepop {

/// The config file at `path`, merged over the files that its `include` names: `include:
/// [base.yaml]` or a single name, relative to the file. Throws UsageError, with its place, for a
/// missing file, a file that includes itself, and more than a thousand files. Adds the paths of all
/// that it reads to `read`.
Value read_config_file(const std::string& path, std::vector<std::string>* read = nullptr);

/// The folder where relative paths in a config file begin: its own, or for one that is a pipe, such
/// as /dev/fd/63 of  -b <(echo ...)  or /dev/stdin, the current one, as an empty text.
std::string folder_of_config(const std::string& file);

}  // namespace stepop
