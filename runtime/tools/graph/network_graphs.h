#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/tools/graph/network_graph.h"
#include "runtime/train/iterator/context.h"

namespace stepop {

/// A network's operations, or the reason why they are unknown.
struct GraphOfNetwork {
  std::string network;
  std::optional<NetworkGraph> graph = {};
  std::string problem = {};
};

/// The graphs of all networks in evaluation mode, each from one pass of the network's first call.
/// Modes, buffers, random numbers and tracked state do not change. Network errors are not thrown.
std::vector<GraphOfNetwork> network_graphs(const Context& context, const NetworkCalls& calls);

/// The known graphs, for a log; `Session::check` draws them.
LoggedGraph logged_graph(const Context& context, const NetworkCalls& calls);

}  // namespace stepop
