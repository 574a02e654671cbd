#pragma once

#include <string>

#include "runtime/core/log/logged_graph.h"

namespace stepop {

/// The bytes of a GraphDef (tensorflow/core/framework/graph.proto) for TensorBoard's graph tab:
/// each node has its shapes in `_output_shapes`, and its `parameters`.
std::string graph_def(const LoggedGraph& graph);

}  // namespace stepop
