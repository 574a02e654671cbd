#pragma once

#include "runtime/core/log/console.h"
#include "runtime/core/measure/tensor_memory.h"
#include "runtime/train/loop/session.h"

namespace stepop {

/// Runs one batch of every split through every op that the config calls, train ops with their
/// updates included, a few times, and reports what it saw: the parameters by module; each batch's
/// types, shapes and devices; the time and the memory of each op, and what it returned. Evaluations
/// have the batches and the weights that they will have. Hooks and callbacks are not run.
///
/// With `shows_graphs` also every operation of the networks. A convolutional network's receptive
/// field is shown in any case.
///
/// It writes no file. It changes the session's networks, optimizers and position: a session that
/// was tried is of no further use. `memory` counts since before the session was made. Throws what
/// `session.check()`, to be called before, and a training would throw.
void try_everything(Session& session, TensorMemory& memory, Console& console,
                    bool shows_graphs = false);

}  // namespace stepop
