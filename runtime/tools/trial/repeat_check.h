#pragma once

#include <string>

#include "runtime/train/loop/session.h"

namespace stepop {

/// Checks that all state on which a training step depends is tracked: trains for two steps,
/// restores all tracked state, trains for the same two steps again, and compares the tracked state
/// bit by bit. An optimizer, a counter or a random generator that the iterator keeps untracked
/// causes a difference. Returns the difference and its meaning; empty when there is none.
///
/// Afterwards, tracked state is restored, but untracked state has seen four steps: only for a
/// session that trains no further, such as a check. Needs memory for two copies of the state. A
/// nondeterministic operation, as some are on a GPU, causes a difference as well.
///
/// First reads the batches of these steps twice, and throws Error for a dataset that returns
/// another example the second time: it has its own random numbers or counter.
std::string check_repeats(Session& session);

}  // namespace stepop
