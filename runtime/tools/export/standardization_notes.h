#pragma once

#include <string>
#include <vector>

#include "runtime/core/value/value.h"

namespace stepop {

/// A note on each key that a `Standardized` of the config's datasets prepares: an exported network
/// expects such numbers, and who runs it has to make them. `config` is resolved, with fitted means.
std::vector<std::string> standardization_notes(const Value& config);

}  // namespace stepop
