#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/core/formats/state.h"
#include "runtime/train/checkpoint/checkpoint.h"
#include "runtime/train/distributed/world.h"

namespace stepop {

/// A checkpoint holds the state of rank 0. If a tracked object differs in another process, such as
/// its random generators, the checkpoint also holds all of that process's tensors of the object,
/// below `rank_<rank>/`.

/// At rank 0: its state, with the objects that differ in other processes. In other processes: the
/// own state. All processes call it. `must_agree` says whether a tracked object (a name before its
/// first dot) must be the same everywhere, like weights. An object that `is_in_parts` may also have
/// tensors that only one process has; they become rank 0's. Throws Error, with the tensor's name
/// and the processes, when an object differs that must be the same.
using OfThing = std::function<bool(std::string_view name)>;
State gathered_state(World& world, const State& own, const OfThing& must_agree,
                     const OfThing& is_in_parts = {});

/// The part of one process in such a state.
State state_of_rank(const State& whole, int rank);

/// Sends rank 0's checkpoint, if any, to all processes.
std::optional<Checkpoint> broadcast_checkpoint(World& world, std::optional<Checkpoint> checkpoint);

}  // namespace stepop
