#pragma once

#include <string_view>
#include <vector>

#include "runtime/base/name_pattern.h"
#include "runtime/config/config.h"

namespace stepop {

/// The regular expression at `path`, such as one that chooses parameters by their names. Throws
/// UsageError with the place for text that is none.
NamePattern read_pattern(const Config& config, std::string_view path);
/// The same, or a list of them.
std::vector<NamePattern> read_patterns(const Config& config, std::string_view path);

}  // namespace stepop
