#pragma once

#include <string>
#include <vector>

#include "runtime/config/config.h"

namespace stepop {

/// Throws UsageError when `metric`, which the config names at `path`, is none of the numbers in
/// `known`, those that were logged and evaluated so far. Silent while nothing is known, and about a
/// number of the ops in `to_come`, such as `train/log_op`, that were not due yet.
void check_is_logged(const Config& config, const std::string& path, const std::string& metric,
                     const std::vector<std::string>& known,
                     const std::vector<std::string>& to_come);

}  // namespace stepop
