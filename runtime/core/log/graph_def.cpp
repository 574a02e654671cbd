#include "runtime/core/log/graph_def.h"

#include "runtime/core/log/protobuf.h"

namespace stepop {
namespace {

namespace pb = protobuf;

/// NodeDef.attr, a map from names to AttrValue.
std::string attribute(std::string_view name, const std::string& value) {
  return pb::bytes_field(5, pb::bytes_field(1, name) + pb::bytes_field(2, value));
}

/// AttrValue.list with a TensorShapeProto for each result.
std::string shapes(const std::vector<std::vector<int64_t>>& all) {
  std::string list;
  for (const auto& sizes : all) {
    std::string shape;
    for (const int64_t size : sizes) shape += pb::bytes_field(2, pb::number_field(1, size));
    list += pb::bytes_field(7, shape);
  }
  return pb::bytes_field(1, list);
}

}  // namespace

std::string graph_def(const LoggedGraph& graph) {
  constexpr int64_t kProducer = 22;  // the format version of TensorBoard's own writers
  std::string bytes;
  for (const auto& node : graph.nodes) {
    std::string definition = pb::bytes_field(1, node.name) + pb::bytes_field(2, node.op);
    for (const auto& input : node.inputs) definition += pb::bytes_field(3, input);
    definition += attribute("_output_shapes", shapes(node.shapes));
    if (node.parameters > 0) {
      definition += attribute("parameters", pb::number_field(3, node.parameters));
    }
    bytes += pb::bytes_field(1, definition);
  }
  return bytes + pb::bytes_field(4, pb::number_field(1, kProducer));
}

}  // namespace stepop
