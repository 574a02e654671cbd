#pragma once

#include <functional>
#include <string>

#include "runtime/core/base/ordered_map.h"
#include "runtime/core/log/logs.h"
#include "runtime/train/distributed/world.h"

namespace stepop {

/// Replaces the scalars of `logs` by their sums over all processes, each times `weight(op)`, and
/// means with weights by the mean over all; all processes call it with the same ops and keys.
/// Pictures and texts stay as they are; only rank 0 writes them. Throws Error, with both lists,
/// when the keys differ.
void share_logs(World& world, OrderedMap<Logs>& logs,
                const std::function<double(const std::string& op)>& weight);

}  // namespace stepop
