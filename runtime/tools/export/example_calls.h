#pragma once

#include <string>
#include <vector>

#include "runtime/train/loop/session.h"
#include "runtime/train/networks/network_calls.h"

namespace stepop {

/// How a network of a session is called: what `Session::check` runs is run, on a batch of each
/// split, and for a training also its train ops, once. These change weights and what is tracked:
/// restore them afterwards. Empty when nothing calls the network.
std::vector<NetworkInputs> example_calls(Session& session, const std::string& network);

}  // namespace stepop
