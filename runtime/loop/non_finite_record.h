#pragma once

#include <string>

#include "runtime/checkpoint/checkpoint.h"
#include "runtime/loop/context.h"
#include "runtime/optim/non_finite.h"
#include "runtime/run/run_directory.h"

namespace stepop {

/// Keeps what one needs to look at a NaN: in `train/non_finite/<step>/` the state before the update
/// that was not made, as a checkpoint, and `batch.json` with the update, what was found, and the
/// indices of the examples of each batch of the step. `state.progress` is where the loop was when
/// the NaN was found, with `micro_batch` batches of its step complete. Returns the message for the
/// user.
std::string record_non_finite(const NonFinite& error, const RunDirectory& directory,
                              const BatchOrder& order, Checkpoint state, int64_t micro_batch,
                              int64_t accumulate);

}  // namespace stepop
