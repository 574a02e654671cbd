#pragma once

#include <string>

#include "runtime/core/config/value.h"

namespace stepop {

/// Whether a scalar is better when it is lower or higher.
enum class MetricDirection { kUnknown, kLower, kHigher };

/// By the config (`checkpoints` or `stop_when`: metric, mode). Without it, by the words in the last
/// part of the name: lower for losses and errors, higher for accuracies and returns. Else unknown,
/// as for a learning rate. `config` may be null.
MetricDirection metric_direction(const std::string& name, const Value* config);

}  // namespace stepop
