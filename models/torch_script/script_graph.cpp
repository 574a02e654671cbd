#include "models/torch_script/script_graph.h"

#include <torch/csrc/jit/ir/constants.h>
#include <torch/csrc/jit/ir/ir.h>
#include <torch/csrc/jit/passes/inliner.h>

#include <algorithm>

namespace stepop {
namespace {

using torch::jit::Block;
using torch::jit::Node;

void add_once(std::vector<std::string>& names, const std::string& name) {
  const auto place = std::lower_bound(names.begin(), names.end(), name);
  if (place == names.end() || *place != name) names.insert(place, name);
}

/// The constant that a node of this schema is given for an argument; none when it is computed.
std::optional<c10::IValue> constant(const Node& node, const char* argument) {
  const auto position = node.schema().argumentIndexWithName(argument);
  if (!position) return std::nullopt;
  return torch::jit::toIValue(node.input(static_cast<size_t>(*position)));
}

/// An operation that drops nothing is the same in both modes.
bool drops_nothing(const Node& node) {
  for (const char* argument : {"p", "dropout"}) {
    const auto share = constant(node, argument);
    if (share && share->isDouble() && share->toDouble() == 0) return true;
  }
  return false;
}

void read_mode(const Node& node, ScriptGraph& found) {
  if (node.maybeSchema() == nullptr) return;
  for (const char* argument : {"training", "train"}) {
    const auto mode = constant(node, argument);
    if (!mode || !mode->isBool() || drops_nothing(node)) continue;
    add_once(mode->toBool() ? found.training : found.evaluation, node.kind().toUnqualString());
  }
}

void read_block(const Block& block, ScriptGraph& found) {
  for (const Node* node : block.nodes()) {
    if (node->kind() == c10::prim::SetAttr) {
      found.assigned.push_back(
          {node->input(0)->type()->cast<c10::ClassType>(), node->s(c10::attr::name)});
    }
    if (node->kind() == c10::prim::CallMethod) found.is_partial = true;
    read_mode(*node, found);
    for (const Block* inner : node->blocks()) read_block(*inner, found);
  }
}

}  // namespace

ScriptGraph read_graph(const torch::jit::Module& script) {
  const auto graph = script.get_method("forward").graph()->copy();
  torch::jit::Inline(*graph);
  ScriptGraph found;
  read_block(*graph->block(), found);
  return found;
}

}  // namespace stepop
