#pragma once

#include <string>
#include <string_view>

#include "runtime/core/config/config.h"

namespace stepop {

/// Everything known on which the examples of the dataset at `key` depend, as text: its config, the
/// files and folders that it opened (sizes, times, names of files), the version of stepop, the
/// source files of the config's classes, where these exist, and what the training gives it: the
/// numbers of classes, and the dataset that it is fitted to. To be called after the dataset was
/// built. Throws Error for a file that cannot be inspected.
std::string describe_source(const Config& params, std::string_view key);

}  // namespace stepop
