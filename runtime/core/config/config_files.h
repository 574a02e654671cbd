#pragma once

#include <string>

#include "runtime/core/config/value.h"

namespace stepop {

/// The config file at `path`, laid over those that its `include` names, `include: [base.yaml]` or
/// one name alone, which are relative to it. Throws UsageError, with its place, for one that is not
/// there, that includes itself, and for more than a thousand files.
Value read_config_file(const std::string& path);

}  // namespace stepop
