#pragma once

#include <string>

#include "runtime/core/config/config.h"

namespace stepop {

/// Whether a lower or a higher value of a scalar is better.
enum class MetricDirection { kUnknown, kLower, kHigher };

/// Decided by the config (`checkpoints` or `stop_when`: metric, mode). Otherwise by the words in
/// the last part of the name: lower for losses and errors, higher for accuracies and returns, the
/// other way round for `neg_mean_squared_error`. Otherwise unknown, for example for a learning
/// rate. `config` may be null.
MetricDirection metric_direction(const std::string& name, const Value* config);

/// Reads `mode: max`, more is better, or `min`. Throws UsageError for any other word, and for a
/// missing key without a `fallback`.
bool read_more_is_better(const Config& part, const char* fallback = nullptr);

}  // namespace stepop
