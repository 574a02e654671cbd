#pragma once

#include "runtime/checkpoint/retention.h"
#include "runtime/config/config.h"

namespace stepop {

/// Reads which checkpoints stay, by default all:
/// `checkpoints: {keep_last: 2, keep_best: 1, metric: validation/eval_op/accuracy/accuracy,
/// mode: max, keep_every: 10e}`. `keep_every` is a trigger in steps or epochs: the first checkpoint
/// of each of its periods stays. Throws UsageError, with the place, for what makes no sense.
Retention read_retention(const Config& config, int64_t steps_per_epoch);

}  // namespace stepop
