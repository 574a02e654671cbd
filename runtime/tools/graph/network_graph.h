#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/core/log/logged_graph.h"
#include "runtime/tools/graph/traced_network.h"

namespace stepop {

/// One operation of a network, or one of its inputs.
struct GraphStep {
  std::string op;                 ///< `conv2d`; of an input `input`.
  std::string layer = {};         ///< The module, `decoder.0`; of an input its name.
  std::vector<size_t> from = {};  ///< Those whose results it takes, in their order.
  std::vector<std::vector<int64_t>> shapes = {};  ///< Of its results.
  int64_t parameters = 0;  ///< Numbers in the parameters of which it is the first user.

  // Of convolutions and poolings, a number for each dimension of an image.
  std::vector<int64_t> kernel = {};
  std::vector<int64_t> stride = {};
  std::vector<int64_t> dilation = {};
};

/// The operations of a network in the order in which they ran, its inputs first.
struct NetworkGraph {
  std::vector<GraphStep> steps = {};
  std::vector<size_t> outputs = {};  ///< The steps that make them.
};

/// What is in a trace. An operation stands in the module whose parameters it uses; one without
/// any in the innermost module around those before and after it, as LibTorch notes no modules.
NetworkGraph graph_of(const TracedNetwork& traced);

/// A table for people: layer, operation, result, parameters; a line each.
std::string graph_table(const NetworkGraph& graph);

/// The same for a log, in the scope `network`.
void add_to(LoggedGraph& logged, const std::string& network, const NetworkGraph& graph);

}  // namespace stepop
