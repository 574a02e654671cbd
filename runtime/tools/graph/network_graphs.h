#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/tools/graph/network_graph.h"
#include "runtime/train/iterator/context.h"

namespace stepop {

/// What a network computes, or why that is not known.
struct GraphOfNetwork {
  std::string network;
  std::optional<NetworkGraph> graph = {};
  std::string problem = {};
};

/// The graphs of all networks in evaluation mode, each by one pass of the first of its calls.
/// Modes, buffers, random numbers and what is tracked are as before. Throws nothing of a network's.
std::vector<GraphOfNetwork> network_graphs(const Context& context, const NetworkCalls& calls);

/// Those that are known, for a log: what `Session::check` draws.
LoggedGraph logged_graph(const Context& context, const NetworkCalls& calls);

}  // namespace stepop
