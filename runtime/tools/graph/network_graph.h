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
  std::string op;                 ///< `conv2d`; `input` for an input.
  std::string layer = {};         ///< The module, `decoder.0`; the name for an input.
  std::vector<size_t> from = {};  ///< The steps whose results it takes, in order.
  std::vector<std::vector<int64_t>> shapes = {};  ///< The shapes of its results.
  int64_t parameters = 0;  ///< The number of values in parameters that it is the first to use.

  // For convolutions and poolings: a number for each dimension of an image.
  std::vector<int64_t> kernel = {};
  std::vector<int64_t> stride = {};
  std::vector<int64_t> dilation = {};
};

/// The operations of a network in the order in which they ran, its inputs first.
struct NetworkGraph {
  std::vector<GraphStep> steps = {};
  std::vector<size_t> outputs = {};  ///< The steps that produce the outputs.
};

/// The operations in a trace. An operation belongs to the module whose parameters it uses; without
/// parameters, to the innermost common module of its neighbours, as LibTorch notes no modules.
NetworkGraph graph_of(const TracedNetwork& traced);

/// A table to print: one line each with layer, operation, result and parameters.
std::string graph_table(const NetworkGraph& graph);

/// The same for a log, in the scope `network`.
void add_to(LoggedGraph& logged, const std::string& network, const NetworkGraph& graph);

}  // namespace stepop
