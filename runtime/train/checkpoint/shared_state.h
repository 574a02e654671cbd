#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/core/formats/state.h"
#include "runtime/train/checkpoint/checkpoint.h"
#include "runtime/train/distributed/world.h"

namespace stepop {

/// A checkpoint holds the state of rank 0, and of the other processes what differs from it, such as
/// their random generators: all tensors of that tracked thing, below `rank_<rank>/`.

/// The state of rank 0 with what differs in the others, at rank 0; at the others what they gave.
/// All processes call it. `must_agree` says of a tracked thing (a name before its first dot) that
/// it must be the same everywhere, as weights are; a thing that `is_in_parts` may also have tensors
/// that one process alone has, which become rank 0's. Throws Error, with the tensor's name and the
/// processes, when what must be the same is not.
using OfThing = std::function<bool(std::string_view name)>;
State gathered_state(World& world, const State& own, const OfThing& must_agree,
                     const OfThing& is_in_parts = {});

/// Of such a state the part of one process.
State state_of_rank(const State& whole, int rank);

/// The checkpoint of rank 0, which may have none, for all.
std::optional<Checkpoint> broadcast_checkpoint(World& world, std::optional<Checkpoint> checkpoint);

}  // namespace stepop
