#include "runtime/tools/graph/network_graph.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/ir/constants.h>
#include <torch/csrc/jit/ir/ir.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "runtime/core/base/number_text.h"
#include "runtime/core/base/text_table.h"

namespace stepop {
namespace {

namespace jit = torch::jit;

/// The ints of a literal list or a constant; empty if they are computed.
std::vector<int64_t> ints_of(const jit::Value* value) {
  std::vector<int64_t> ints;
  if (value->node()->kind() == c10::prim::ListConstruct) {
    for (const jit::Value* each : value->node()->inputs()) {
      const auto number = jit::toIValue(each);
      if (!number || !number->isInt()) return {};
      ints.push_back(number->toInt());
    }
    return ints;
  }
  const auto constant = jit::toIValue(value);
  if (constant && constant->isInt()) return {constant->toInt()};
  if (constant && constant->isIntList()) return constant->toIntVector();
  return {};
}

std::vector<int64_t> ints_of(const jit::Node& node, const char* argument) {
  const auto* schema = node.maybeSchema();
  const auto position = schema != nullptr ? schema->argumentIndexWithName(argument) : std::nullopt;
  return position ? ints_of(node.input(static_cast<size_t>(*position))) : std::vector<int64_t>{};
}

/// Repeats a single number for all dimensions.
std::vector<int64_t> for_each_dimension(std::vector<int64_t> numbers, size_t dimensions,
                                        int64_t otherwise) {
  if (numbers.empty()) numbers.push_back(otherwise);
  if (numbers.size() == 1) numbers.resize(dimensions, numbers.front());
  return numbers;
}

std::string common_module(const std::string& a, const std::string& b) {
  size_t end = 0;  // the end of the last whole name that both share
  for (size_t i = 0;; ++i) {
    const bool a_ends = i >= a.size() || a[i] == '.';
    const bool b_ends = i >= b.size() || b[i] == '.';
    if (a_ends && b_ends) end = i;
    if (i >= a.size() || i >= b.size() || a[i] != b[i]) break;
  }
  return a.substr(0, end);
}

class Reader {
 public:
  explicit Reader(const TracedNetwork& traced) : traced_(traced) {
    for (const auto& item : traced.script->named_parameters()) {
      parameters_.emplace(item.name, item.value);
    }
  }

  NetworkGraph read() {
    const auto inputs = traced_.graph->inputs();
    for (size_t i = 1; i < inputs.size(); ++i) {  // the first is self
      GraphStep step{.op = "input", .layer = traced_.inputs.at(i - 1)};
      add_shape(step, inputs[i]);
      sources_[inputs[i]] = {graph_.steps.size()};
      graph_.steps.push_back(std::move(step));
      has_parameters_.push_back(false);
    }
    for (const jit::Node* node : traced_.graph->nodes()) read(*node);
    for (const jit::Value* output : traced_.graph->outputs()) {
      for (const size_t source : sources_[output]) graph_.outputs.push_back(source);
    }
    place_the_others(inputs.size() - 1);
    return std::move(graph_);
  }

 private:
  static bool holds_tensors(const jit::Value* value) {
    const auto& type = *value->type();
    return type.isSubtypeOf(*c10::TensorType::get()) ||
           type.isSubtypeOf(*c10::ListType::ofTensors());
  }

  static void add_shape(GraphStep& step, const jit::Value* value) {
    const auto tensor = value->type()->cast<c10::TensorType>();
    if (!tensor) return;
    const auto sizes = tensor->sizes().concrete_sizes();
    if (sizes) step.shapes.push_back(*sizes);
  }

  void read(const jit::Node& node) {
    if (node.kind() == c10::prim::GetAttr) {
      const std::string& before = paths_[node.input()];
      paths_[node.output()] =
          before.empty() ? node.s(c10::attr::name) : before + "." + node.s(c10::attr::name);
      return;
    }
    std::vector<size_t> from;
    std::vector<std::string> used;
    for (const jit::Value* input : node.inputs()) {
      const auto path = paths_.find(input);
      if (path != paths_.end()) used.push_back(path->second);
      for (const size_t source : sources_[input]) {
        if (std::ranges::find(from, source) == from.end()) from.push_back(source);
      }
    }
    if (node.kind().is_prim()) {  // lists, tuples, constants: their contents pass through
      for (const jit::Value* output : node.outputs()) sources_[output] = from;
      return;
    }
    if (!std::ranges::any_of(node.outputs(), holds_tensors)) return;
    if (node.kind() == c10::aten::t && from.empty() && used.size() == 1) {
      paths_[node.output()] = used.front();  // the weight of a linear layer
      transposed_.insert(node.output());
      return;
    }
    GraphStep step{.op = name_of(node), .from = std::move(from)};
    for (const auto& path : used) {
      if (step.layer.empty())
        step.layer = path.substr(0, std::max<size_t>(path.rfind('.') + 1, 1) - 1);
      const auto parameter = parameters_.find(path);
      if (parameter != parameters_.end() && counted_.insert(path).second) {
        step.parameters += parameter->second.numel();
      }
    }
    read_window(node, used, step);
    for (const jit::Value* output : node.outputs()) {
      add_shape(step, output);
      sources_[output] = {graph_.steps.size()};
    }
    has_parameters_.push_back(!used.empty());
    graph_.steps.push_back(std::move(step));
  }

  static bool is_convolution(const jit::Node& node) {
    return node.kind() == c10::aten::_convolution;
  }

  std::string name_of(const jit::Node& node) const {
    std::string name = node.kind().toUnqualString();
    if (is_convolution(node)) {
      const auto transposed = jit::toIValue(node.input(6));
      const bool is_transposed = transposed && transposed->isBool() && transposed->toBool();
      return fmt::format("{}{}d", is_transposed ? "conv_transpose" : "conv",
                         ints_of(node, "stride").size());
    }
    const bool is_linear = std::ranges::any_of(
        node.inputs(), [&](const auto* input) { return transposed_.contains(input); });
    if (is_linear && (name == "addmm" || name == "matmul" || name == "mm")) return "linear";
    while (name.starts_with('_')) name.erase(0, 1);
    while (name.ends_with('_')) name.pop_back();  // in-place
    return name;
  }

  void read_window(const jit::Node& node, const std::vector<std::string>& used,
                   GraphStep& step) const {
    if (step.op.starts_with("conv")) {
      const auto weight = used.empty() ? parameters_.end() : parameters_.find(used.front());
      if (weight == parameters_.end() || weight->second.dim() < 3) return;
      step.kernel = weight->second.sizes().slice(2).vec();
    } else if (step.op.find("_pool") != std::string::npos && !step.op.starts_with("adaptive")) {
      const auto shape = step.from.empty() ? std::vector<std::vector<int64_t>>{}
                                           : graph_.steps[step.from.front()].shapes;
      if (shape.empty() || shape.front().size() < 3) return;
      step.kernel = for_each_dimension(ints_of(node, "kernel_size"), shape.front().size() - 2, 1);
    } else {
      return;
    }
    std::vector<int64_t> stride = ints_of(node, "stride");
    // The default stride of a pooling is its kernel.
    step.stride = stride.empty() && !step.op.starts_with("conv")
                      ? step.kernel
                      : for_each_dimension(std::move(stride), step.kernel.size(), 1);
    step.dilation = for_each_dimension(ints_of(node, "dilation"), step.kernel.size(), 1);
  }

  /// Assigns modules to operations without parameters.
  void place_the_others(size_t inputs) {
    auto& steps = graph_.steps;
    std::vector<std::string> next(steps.size() + 1);
    for (size_t i = steps.size(); i-- > inputs;) {
      next[i] = has_parameters_[i] ? steps[i].layer : next[i + 1];
    }
    std::string before;
    for (size_t i = inputs; i < steps.size(); ++i) {
      if (has_parameters_[i]) {
        before = steps[i].layer;
      } else {
        steps[i].layer = common_module(before, next[i + 1]);
      }
    }
  }

  const TracedNetwork& traced_;
  std::map<std::string, at::Tensor> parameters_;
  std::map<const jit::Value*, std::string> paths_;
  std::map<const jit::Value*, std::vector<size_t>> sources_;
  std::set<const jit::Value*> transposed_;  ///< Transposed parameters.
  std::set<std::string> counted_;
  std::vector<bool> has_parameters_;  ///< By step: whether it uses parameters or buffers.
  NetworkGraph graph_;
};

std::string shapes_text(const std::vector<std::vector<int64_t>>& shapes) {
  std::vector<std::string> texts;
  for (const auto& shape : shapes) texts.push_back(fmt::format("[{}]", fmt::join(shape, ", ")));
  return fmt::format("{}", fmt::join(texts, ", "));
}

}  // namespace

NetworkGraph graph_of(const TracedNetwork& traced) { return Reader(traced).read(); }

std::string graph_table(const NetworkGraph& graph) {
  TextTable table({{"layer"}, {"operation"}, {"result"}, {"parameters", true}});
  for (const auto& step : graph.steps) {
    table.add({step.layer, step.op, shapes_text(step.shapes),
               step.parameters > 0 ? with_thousands(step.parameters) : ""});
  }
  return table.text();
}

void add_to(LoggedGraph& logged, const std::string& network, const NetworkGraph& graph) {
  std::map<std::string, int> taken;
  std::vector<std::string> names;
  for (const auto& step : graph.steps) {
    std::string name = network;
    if (!step.layer.empty()) name += "/" + step.layer;
    std::ranges::replace(name, '.', '/');
    if (step.op != "input") name += "/" + step.op;
    const int count = ++taken[name];
    if (count > 1) name += fmt::format("_{}", count);
    LoggedGraph::Node node{.name = name, .op = step.op, .shapes = step.shapes};
    node.parameters = step.parameters;
    for (const size_t source : step.from) node.inputs.push_back(names[source]);
    names.push_back(std::move(name));
    logged.nodes.push_back(std::move(node));
  }
  for (size_t i = 0; i < graph.outputs.size(); ++i) {
    logged.nodes.push_back({.name = fmt::format("{}/output_{}", network, i),
                            .op = "output",
                            .inputs = {names[graph.outputs[i]]},
                            .shapes = graph.steps[graph.outputs[i]].shapes});
  }
}

}  // namespace stepop
