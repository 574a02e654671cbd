#pragma once

#include <string>

#include "runtime/config/value.h"

namespace stepop {

/// What of a scalar is better.
enum class Better { kUnknown, kLower, kHigher };

/// By the config's own word (`checkpoints` or `stop_when`: metric, mode), else by the words in the
/// name: lower for losses and errors, higher for accuracies and scores; else unknown, as for a
/// learning rate. `config` may be null.
Better better_of(const std::string& name, const Value* config);

}  // namespace stepop
