#pragma once

#include <functional>
#include <string>

#include "runtime/core/base/ordered_map.h"
#include "runtime/core/log/logs.h"
#include "runtime/train/distributed/world.h"

namespace stepop {

/// Makes the scalars of `logs` their sums over all processes, each times `weight(op)`; all of them
/// call it with the same ops and keys. Pictures and texts stay what they are, which is rank 0's in
/// what is written. Throws Error, with both lists, when the keys differ.
void share_logs(World& world, OrderedMap<Logs>& logs,
                const std::function<double(const std::string& op)>& weight);

}  // namespace stepop
