#pragma once

#include "runtime/core/log/console.h"
#include "runtime/core/measure/tensor_memory.h"
#include "runtime/train/session/session.h"

namespace stepop {

/// Runs one batch of every split through every op that the config calls, including train ops with
/// their updates, a few times, and reports the parameters by module; each batch's types, shapes and
/// devices; the time and the memory of each op, and its returned values. Evaluations use their real
/// batches and weights. Hooks and callbacks are not run.
///
/// With `shows_graphs`, also reports every operation of the networks. A convolutional network's
/// receptive field is always shown.
///
/// Writes no file. Changes the session's networks, optimizers and position, so the session cannot
/// be used afterwards. `memory` must count from before the session was made. Call `session.check()`
/// first. Throws the errors of `session.check()` and of a training.
void try_everything(Session& session, TensorMemory& memory, Console& console,
                    bool shows_graphs = false);

}  // namespace stepop
