#pragma once

#include <string>

#include "runtime/train/loop/session.h"

namespace stepop {

/// Looks whether everything that a training step depends on is tracked: trains for two steps, puts
/// back all that is tracked, trains for the same two steps again, and compares what is tracked
/// then, bit by bit. An optimizer, a counter or a random generator that the iterator keeps for
/// itself makes a difference. Returns what is different and what that means; empty when it is the
/// same.
///
/// What is tracked is as before afterwards, what is not has seen four steps: for a session that
/// trains no further, such as one that only checks. It needs memory for two copies of the state. An
/// operation that is not deterministic, as some are on a GPU, makes a difference as well.
///
/// Before that it reads the batches of these steps twice, and throws Error for a dataset that gives
/// another example the second time: one with random numbers or a counter of its own.
std::string check_repeats(Session& session);

}  // namespace stepop
