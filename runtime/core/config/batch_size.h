#pragma once

#include <cstdint>

#include "runtime/core/config/config.h"

namespace stepop {

/// The number of examples in a training batch, over all `processes` that train together:
/// `batch_size: 64`, or `batch_size: {per_process: 64}`, which is multiplied by the number of
/// processes. Throws UsageError for another map, and for numbers below 1.
int64_t read_batch_size(const Config& config, int64_t processes);

/// The number of examples in an evaluation batch: `test_batch_size`, by default `batch_size`.
/// Processes take turns with whole batches, so `{per_process: 64}` is 64 with any number of
/// processes. Throws the same errors as `read_batch_size`.
int64_t read_test_batch_size(const Config& config);

}  // namespace stepop
