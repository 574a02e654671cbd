#pragma once

#include <string>

#include "runtime/train/session/session.h"

namespace stepop {

/// What a check of repeated steps found.
struct Repeats {
  std::string warning;            ///< Why a resume differs; empty when it has the same bits.
  bool is_from_iterator = false;  ///< State that is not tracked, as far as LibTorch can tell.
};

/// Checks that all state on which a training step depends is tracked: trains for two steps,
/// restores all tracked state, trains for the same two steps again, and compares the tracked state
/// bit by bit. An optimizer, a counter or a random generator that the iterator keeps untracked
/// causes a difference.
///
/// On a GPU so do operations that add in another order each time. There the check runs with
/// LibTorch's deterministic algorithms first, and then without them. A kernel of another library
/// that differs by itself counts as state that is not tracked.
///
/// Afterwards, tracked state is restored, but untracked state has seen further steps: only for a
/// session that trains no further, such as a check. Needs memory for three copies of the state.
///
/// First reads the batches of these steps twice, and throws Error for a dataset that returns
/// another example the second time: it has its own random numbers or counter.
Repeats check_repeats(Session& session);

}  // namespace stepop
