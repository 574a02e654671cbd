#pragma once

#include <string>

#include "runtime/checkpoint/checkpoint.h"
#include "runtime/loop/session.h"
#include "runtime/optim/non_finite.h"
#include "runtime/run/run_directory.h"

namespace stepop {

/// What ends a training in which NaN came up; the message says how to go on.
class RecordedNonFinite : public Error {
 public:
  using Error::Error;
};

/// The state that an unfinished step left, as far as it can be put back: without the gradients that
/// wait for their update, and with `random`, the generators' state at its beginning.
Checkpoint beginning_of_step(const Session& session, const State& random);

/// Keeps what one needs to look at a NaN: in `train/non_finite/<step>/` a checkpoint with which the
/// training begins that step again, and `batch.json` with the update, what was found, and the
/// indices of the examples of each batch of the step. `state` is that of the loop when the NaN was
/// found, with `micro_batch` batches of its step complete; what a step changes before its update,
/// running statistics and an iterator's own values, has changed in it. Returns the message for the
/// user.
std::string record_non_finite(const NonFinite& error, const RunDirectory& directory,
                              const BatchOrder& order, Checkpoint state, int64_t micro_batch,
                              int64_t accumulate);

}  // namespace stepop
