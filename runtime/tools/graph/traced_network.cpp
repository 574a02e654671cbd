#include "runtime/tools/graph/traced_network.h"

#include <ATen/core/grad_mode.h>
#include <ATen/record_function.h>
#include <c10/util/Exception.h>
#include <fmt/format.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/frontend/tracer.h>
#include <torch/csrc/jit/ir/constants.h>
#include <torch/csrc/jit/ir/ir.h>
#include <torch/csrc/jit/passes/dead_code_elimination.h>
#include <torch/nn/module.h>

#include <algorithm>
#include <cctype>
#include <optional>
#include <set>
#include <utility>

#include "runtime/core/base/error.h"

namespace stepop {
namespace {

namespace jit = torch::jit;

/// A TorchScript module with the tensors of `network`, without code.
jit::Module script_of(const torch::nn::Module& network, const c10::QualifiedName& name,
                      const std::shared_ptr<jit::CompilationUnit>& unit) {
  jit::Module script(name, unit, /*shouldMangle=*/true);
  script.register_attribute("training", c10::BoolType::get(), network.is_training());
  for (const auto& item : network.named_parameters(/*recurse=*/false)) {
    if (item.value().defined()) {
      script.register_parameter(item.key(), item.value(), /*is_buffer=*/false);
    }
  }
  for (const auto& item : network.named_buffers(/*recurse=*/false)) {
    if (item.value().defined()) script.register_buffer(item.key(), item.value());
  }
  for (const auto& child : network.named_children()) {
    if (!child.value()) continue;
    script.register_module(child.key(),
                           script_of(*child.value(), c10::QualifiedName(name, "Part"), unit));
  }
  return script;
}

/// The qualified name, `__torch__.UnetGenerator`.
c10::QualifiedName qualified(const std::string& class_name) {
  std::string name;
  for (const char c : class_name) {
    name += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  }
  if (name.empty() || std::isdigit(static_cast<unsigned char>(name.front())) != 0) {
    name = "Network" + name;
  }
  return c10::QualifiedName(c10::QualifiedName("__torch__"), name);
}

// The tracer takes functions without state, so they use these variables; it runs in this thread.
thread_local std::set<std::string>* reads_seen = nullptr;
thread_local std::set<std::string>* warnings_seen = nullptr;

void take_warning(const std::string& text) {
  if (warnings_seen != nullptr) {
    warnings_seen->insert(text);
  } else {
    TORCH_WARN(text);
  }
}

/// During its lifetime, notes operations that return numbers to the code, not tensors to the graph.
class ReadWatch {
 public:
  explicit ReadWatch(std::set<std::string>& reads) : before_(std::exchange(reads_seen, &reads)) {
    handle_ = at::addThreadLocalCallback(
        at::RecordFunctionCallback([](const at::RecordFunction& function)
                                       -> std::unique_ptr<at::ObserverContext> {
          const std::string name = function.name();
          for (const char* each : {"aten::item", "aten::_local_scalar_dense", "aten::equal",
                                   "aten::is_nonzero", "aten::allclose"}) {
            if (reads_seen != nullptr && name == each) reads_seen->insert(name.substr(6));
          }
          return nullptr;
        }).scopes({at::RecordScope::FUNCTION}));
  }
  ~ReadWatch() {
    at::removeCallback(handle_);
    reads_seen = before_;
  }
  ReadWatch(const ReadWatch&) = delete;
  ReadWatch& operator=(const ReadWatch&) = delete;

 private:
  std::set<std::string>* before_;
  at::CallbackHandle handle_;
};

/// The advice for an error of the tracer.
std::string hint_of(const std::string& text) {
  if (text.find("Cannot insert a Tensor that requires grad as a constant") != std::string::npos) {
    return "forward uses a tensor that requires a gradient and is no parameter of the network: "
           "register_parameter in its constructor makes it one";
  }
  if (text.find("output of traced region did not have observable data dependence") !=
          std::string::npos ||
      text.find("not part of the active trace") != std::string::npos) {
    return "an output does not depend on the inputs";
  }
  return {};
}

struct Trace {
  jit::Module script;
  std::shared_ptr<jit::Graph> graph = {};
  std::set<std::string> read = {};
  std::set<std::string> warnings = {};
  size_t outputs = 0;
};

Trace trace_once(torch::nn::Module& network, const std::string& class_name,
                 const NetworkInputs& inputs) {
  const at::NoGradGuard no_grad;
  Trace trace{.script = script_of(network, qualified(class_name),
                                  std::make_shared<jit::CompilationUnit>())};
  jit::Stack stack;
  for (const auto& input : inputs) {
    if (input.defined()) stack.emplace_back(input.detach().clone());  // forward may write into it
  }
  const auto call = [&](const jit::Stack& given) -> jit::Stack {
    NetworkInputs all;
    size_t next = 0;
    for (const auto& input : inputs) {
      all.push_back(input.defined() ? given.at(next++).toTensor() : at::Tensor());
    }
    std::vector<at::Tensor> outputs = call_network(network, all);
    trace.outputs = outputs.size();
    if (outputs.size() == 1) return {outputs.front()};
    std::vector<c10::IValue> values(outputs.begin(), outputs.end());
    return {c10::ivalue::Tuple::create(std::move(values))};
  };
  jit::tracer::setWarn(take_warning);
  auto* const warnings_before = std::exchange(warnings_seen, &trace.warnings);
  try {
    const ReadWatch watch(trace.read);
    const auto [state, outputs] = jit::tracer::trace(
        std::move(stack), call, [](const auto&) { return std::string(); }, /*strict=*/true,
        /*force_outplace=*/false, &trace.script, names_of_inputs(network, inputs));
    trace.graph = state->graph;
  } catch (const std::exception& error) {
    warnings_seen = warnings_before;
    const std::string text = error_text(error);
    const std::string hint = hint_of(text);
    throw Error(hint.empty() ? text : hint);
  }
  warnings_seen = warnings_before;
  return trace;
}

/// A number in the graph that depends on a size: `slope * size + offset`.
struct Followed {
  jit::Node* constant;
  int64_t slope;
  int64_t offset;
};

std::optional<int64_t> int_of(const jit::Node& node) {
  if (node.kind() != c10::prim::Constant || node.outputs().size() != 1) return std::nullopt;
  const auto value = jit::toIValue(node.output());
  return value && value->isInt() ? std::optional(value->toInt()) : std::nullopt;
}

/// The different numbers in two graphs of the same operations; nothing if the operations differ.
std::vector<Followed> followed_sizes(jit::Graph& graph, jit::Graph& other, int64_t size,
                                     int64_t other_size) {
  std::vector<Followed> found;
  auto theirs = other.nodes().begin();
  for (jit::Node* node : graph.nodes()) {
    if (theirs == other.nodes().end() || theirs->kind() != node->kind()) return {};
    const auto here = int_of(*node);
    const auto there = int_of(**theirs);
    ++theirs;
    if (!here || !there || *here == *there) continue;
    const int64_t more = other_size - size;
    if ((*there - *here) % more != 0) continue;
    const int64_t slope = (*there - *here) / more;
    found.push_back({node, slope, *here - slope * size});
  }
  if (theirs != other.nodes().end()) return {};
  return found;
}

/// Replaces the numbers by sizes that are computed from a dimension of `input`.
void follow(jit::Graph& graph, jit::Value* input, int64_t dimension,
            const std::vector<Followed>& sizes) {
  if (sizes.empty()) return;
  const jit::WithInsertPoint begin(*graph.nodes().begin());
  jit::Value* const whole = graph.insert(c10::aten::size, {input, dimension});
  for (const auto& [constant, slope, offset] : sizes) {
    jit::Value* size = whole;
    if (slope != 1) size = graph.insert(c10::aten::mul, {size, slope});
    if (offset != 0) size = graph.insert(c10::aten::add, {size, offset});
    constant->output()->replaceAllUsesWith(size);
  }
}

/// The position, among the defined inputs, of the first input whose `dimension` differs.
std::optional<size_t> differing_input(const NetworkInputs& a, const NetworkInputs& b,
                                      int64_t dimension) {
  size_t position = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    if (!a[i].defined()) continue;
    if (a[i].dim() > dimension && a[i].size(dimension) != b.at(i).size(dimension)) return position;
    ++position;
  }
  return std::nullopt;
}

const at::Tensor& defined_at(const NetworkInputs& inputs, size_t position) {
  const auto found = std::ranges::find_if(
      inputs, [&](const auto& input) { return input.defined() && position-- == 0; });
  return *found;
}

/// Turns `upsample_nearest2d(x, size, 2, 2)` into `upsample_nearest2d(x, None, [2, 2])`, which also
/// works for other sizes of x, and which `torch.onnx` knows.
void keep_scales(jit::Graph& graph) {
  std::vector<jit::Node*> nodes(graph.nodes().begin(), graph.nodes().end());
  for (jit::Node* node : nodes) {
    const std::string name = node->kind().toUnqualString();
    if (!name.starts_with("upsample_") || name.ends_with("_aa")) continue;
    const auto from = node->input(0)->type()->cast<c10::TensorType>();
    const auto to = node->output()->type()->cast<c10::TensorType>();
    if (!from || !to || !from->sizes().concrete_sizes() || !to->sizes().concrete_sizes()) continue;
    const auto before = *from->sizes().concrete_sizes();
    const auto after = *to->sizes().concrete_sizes();
    std::vector<double> scales;
    std::vector<jit::Value*> kept;  // align_corners
    for (size_t i = 2; i < node->inputs().size(); ++i) {
      const auto value = jit::toIValue(node->input(i));
      if (value && value->isDouble()) scales.push_back(value->toDouble());
      if (value && value->isBool()) kept.push_back(node->input(i));
    }
    if (scales.size() + 2 != before.size()) continue;
    bool is_same = true;
    for (size_t i = 0; i < scales.size(); ++i) {
      is_same &=
          after[i + 2] == static_cast<int64_t>(static_cast<double>(before[i + 2]) * scales[i]);
    }
    if (!is_same) continue;
    const jit::WithInsertPoint here(node);
    std::vector<jit::Value*> factors;
    for (const double scale : scales) factors.push_back(graph.insertConstant(scale));
    jit::Node* list = graph.insertNode(graph.createList(c10::FloatType::get(), factors));
    std::vector<jit::Value*> inputs{node->input(0), graph.insertConstant(c10::IValue())};
    inputs.insert(inputs.end(), kept.begin(), kept.end());
    inputs.push_back(list->output());
    jit::Node* scaled = graph.insertNode(graph.create(node->kind(), inputs, 1));
    scaled->output()->setType(node->output()->type());
    node->output()->replaceAllUsesWith(scaled->output());
    node->destroy();
  }
}

/// 2 for [B, C, H, W]; nothing when it is unknown.
std::optional<size_t> dimensions_of_images(const jit::Value& value) {
  const auto type = value.type()->cast<c10::TensorType>();
  const auto dimensions = type ? type->sizes().size() : std::nullopt;
  return dimensions && *dimensions > 2 ? std::optional(*dimensions - 2) : std::nullopt;
}

/// In C++, one size may stand for all dimensions, `max_pool2d(x, 2)`. Other readers of the file,
/// above all `torch.onnx`, need a size for each dimension.
void write_out_sizes(jit::Graph& graph) {
  for (jit::Node* node : graph.nodes()) {
    const c10::FunctionSchema* schema = node->maybeSchema();
    if (schema == nullptr) continue;
    for (size_t i = 0; i < std::min(schema->arguments().size(), node->inputs().size()); ++i) {
      const c10::Argument& argument = schema->arguments()[i];
      std::optional<size_t> length;
      if (argument.N()) length = static_cast<size_t>(*argument.N());
      if (node->kind() == c10::aten::_convolution) length = dimensions_of_images(*node->output());
      jit::Node* list = node->input(i)->node();
      if (!length || list->kind() != c10::prim::ListConstruct || list->inputs().size() != 1) {
        continue;
      }
      while (list->inputs().size() < *length) list->addInput(list->input(0));
    }
  }
}

std::vector<std::string> listed(const std::set<std::string>& names) {
  return {names.begin(), names.end()};
}

}  // namespace

TracedNetwork trace_network(torch::nn::Module& network, const std::string& class_name,
                            const NetworkInputs& inputs, const std::vector<OtherSize>& others) {
  Trace trace = trace_once(network, class_name, inputs);
  TracedNetwork traced{.graph = trace.graph,
                       .inputs = names_of_inputs(network, inputs),
                       .outputs = trace.outputs,
                       .read = listed(trace.read),
                       .warnings = listed(trace.warnings)};
  // All traces are compared with the original graph, before anything is inserted.
  std::vector<std::pair<size_t, std::vector<Followed>>> found;
  for (const auto& other : others) {
    const auto input = differing_input(inputs, other.inputs, other.dimension);
    found.emplace_back(input.value_or(0), std::vector<Followed>{});
    if (!input) continue;
    const Trace again = trace_once(network, class_name, other.inputs);
    found.back().second =
        followed_sizes(*trace.graph, *again.graph, defined_at(inputs, *input).size(other.dimension),
                       defined_at(other.inputs, *input).size(other.dimension));
  }
  const size_t self = 1;
  for (size_t i = 0; i < others.size(); ++i) {
    follow(*trace.graph, trace.graph->inputs().at(self + found[i].first), others[i].dimension,
           found[i].second);
  }
  keep_scales(*trace.graph);
  jit::EliminateDeadCode(trace.graph);
  write_out_sizes(*trace.graph);
  std::set<std::string> random;
  std::set<std::string> devices;
  for (const jit::Node* node : trace.graph->nodes()) {
    if (node->isNondeterministic()) random.insert(node->kind().toUnqualString());
    if (node->kind() != c10::prim::Constant || node->outputs().size() != 1) continue;
    const auto value = jit::toIValue(node->output());
    if (value && value->isDevice()) devices.insert(value->toDevice().str());
  }
  traced.random = listed(random);
  traced.devices = listed(devices);
  auto& script = trace.script;
  jit::Function* function = script._ivalue()->compilation_unit()->create_function(
      c10::QualifiedName(*script.type()->name(), "forward"), trace.graph);
  script.type()->addMethod(function);
  traced.script = std::make_shared<jit::Module>(std::move(script));
  return traced;
}

}  // namespace stepop
