#include "runtime/tools/graph/network_graphs.h"

#include <torch/nn/module.h>

#include <exception>

#include "runtime/core/base/error.h"
#include "runtime/tools/graph/traced_network.h"
#include "runtime/train/networks/evaluation_mode.h"
#include "runtime/train/step/random_fork.h"
#include "runtime/train/step/snapshot.h"

namespace stepop {
namespace {

NetworkGraph graph_of_call(torch::nn::Module& network, const std::string& class_name,
                           const NetworkInputs& inputs) {
  const EvaluationMode mode(network);
  return graph_of(trace_network(network, class_name, inputs));
}

}  // namespace

std::vector<GraphOfNetwork> network_graphs(const Context& context, const NetworkCalls& calls) {
  const RandomFork random(context.seed, context.device);
  const Snapshot snapshot(context);
  const auto names = context.networks.names();
  const auto class_names = context.networks.class_names();
  std::vector<GraphOfNetwork> graphs;
  for (size_t i = 0; i < names.size(); ++i) {
    GraphOfNetwork& found = graphs.emplace_back(GraphOfNetwork{.network = names[i]});
    torch::nn::Module& network = *context.networks.get(names[i]);
    // The calls are copied, since the trace is a call too.
    const std::vector<NetworkInputs> seen = calls.of(names[i]);
    if (!is_callable(network)) {
      found.problem = "it derives from neither stepop::Network nor stepop::MultiNetwork";
    } else if (seen.empty()) {
      found.problem = "nothing called it";
    } else {
      try {
        found.graph = graph_of_call(network, class_names[i], seen.front());
      } catch (const std::exception& error) {
        found.problem = error_text(error);
      }
    }
  }
  snapshot.restore();
  return graphs;
}

LoggedGraph logged_graph(const Context& context, const NetworkCalls& calls) {
  LoggedGraph logged;
  for (const auto& [network, graph, problem] : network_graphs(context, calls)) {
    if (graph) add_to(logged, network, *graph);
  }
  return logged;
}

}  // namespace stepop
