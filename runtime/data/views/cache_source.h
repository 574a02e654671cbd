#pragma once

#include <string>
#include <string_view>

#include "runtime/core/config/config.h"

namespace stepop {

/// All that the examples of the dataset at `key` depend on, as far as it is known, as text: its
/// config, the files and folders that it opened (sizes, times, names of files), the version of
/// stepop, and the source files of the classes that the config names, where these are there. To be
/// called when the dataset was built. Throws Error for a file that cannot be looked at.
std::string describe_source(const Config& params, std::string_view key);

}  // namespace stepop
