#pragma once

#include <cstdint>

#include "runtime/core/config/config.h"

namespace stepop {

/// The examples of a training batch, over all of `processes` that train together: `batch_size: 64`,
/// or `batch_size: {per_process: 64}`, which is so many times the number of processes. Throws
/// UsageError for another map, and for numbers below 1.
int64_t read_batch_size(const Config& config, int64_t processes);

/// The examples of an evaluation's batch: `test_batch_size`, by default `batch_size`. Processes
/// take whole ones in turn, so `{per_process: 64}` is 64 with any number of them. Throws as
/// `read_batch_size` does.
int64_t read_test_batch_size(const Config& config);

}  // namespace stepop
