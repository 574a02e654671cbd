#pragma once

#include <string>
#include <vector>

#include "runtime/train/networks/network_calls.h"
#include "runtime/train/session/session.h"

namespace stepop {

/// The calls of a session's network: runs everything that `Session::check` runs, on a batch of each
/// split, and for a training also its train ops, once. These change weights and tracked state:
/// restore both afterwards. Empty when nothing calls the network.
std::vector<NetworkInputs> example_calls(Session& session, const std::string& network);

}  // namespace stepop
