#include <ATen/core/grad_mode.h>
#include <caffe2/serialize/inline_container.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/ir/constants.h>
#include <torch/csrc/jit/ir/ir.h>
#include <torch/csrc/jit/passes/inliner.h>
#include <torch/csrc/jit/runtime/graph_executor.h>
#include <torch/csrc/jit/serialization/import.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/core/base/error.h"
#include "runtime/core/config/config.h"
#include "runtime/data/dataset.h"
#include "runtime/train/networks/network.h"

namespace stepop {
namespace {

constexpr const char* kExport =
    "export the module in Python: torch.jit.script(module).save(\"net.pt\")";

/// Describes, from its first bytes, a file that is not a PyTorch archive.
std::string describe_start(const std::string& path) {
  std::array<char, 9> start{};
  std::ifstream file(path, std::ios::binary);
  if (file.peek() == std::ifstream::traits_type::eof()) return "an empty file";
  file.read(start.data(), start.size());
  // 8 bytes that give the length of a JSON header: https://huggingface.co/docs/safetensors
  if (start[8] == '{' && start[7] == 0 && start[6] == 0) {
    return "a safetensors file, which holds weights and no code (init_from takes weights)";
  }
  if (start[0] == 'P' && start[1] == 'K') return "an archive that is damaged or cut short";
  if (start[0] == '\x80') return "a pickle, as an old torch.save wrote it";
  return "no archive of PyTorch's";
}

/// The problem with the archive; empty when the archive holds a script.
std::string problem_of(const std::string& path) {
  try {
    caffe2::serialize::PyTorchStreamReader reader(path);
    if (reader.hasRecord("constants.pkl")) return {};
    if (reader.hasRecord("data.pkl")) return "a pickle that torch.save wrote";
    for (const auto& record : reader.getAllRecords()) {
      if (record.ends_with("model.json") || record.ends_with("exported_program.json")) {
        return "a program of torch.export";
      }
    }
    return "an archive without code";
  } catch (const std::exception&) {
    return describe_start(path);
  }
}

/// Loads a script from `torch.jit.save` at the path that `key` gives. Throws UsageError for
/// anything else, such as a folder, a state_dict or weights without code; the message describes the
/// file.
torch::jit::Module load_script(const Config& params, std::string_view key) {
  const std::string path = get_file(params, key);
  const std::string problem = problem_of(path);
  if (!problem.empty()) {
    throw params.error(key,
                       fmt::format("{}: this is {}, not TorchScript; {}", path, problem, kExport));
  }
  try {
    return torch::jit::load(path, c10::kCPU, /*load_debug_files=*/true);
  } catch (const std::exception& error) {
    throw params.error(key, fmt::format("{}: cannot be loaded: {}", path, error_text(error)));
  }
}

/// Facts about a script's `forward` that its code shows before it runs.
struct ScriptGraph {
  /// An attribute to which `forward` assigns, and the class that has it.
  struct Assigned {
    c10::ClassTypePtr owner;
    std::string name;
  };

  std::vector<Assigned> assigned;
  /// Operations that behave differently in training, such as `dropout`, and whose mode is a
  /// constant in the code: `training` or `evaluation`. Sorted, each once.
  std::vector<std::string> training, evaluation;
  /// The code calls through an interface, so not all of the code can be seen.
  bool is_partial = false;
};

using torch::jit::Block;
using torch::jit::Node;

void add_once(std::vector<std::string>& names, const std::string& name) {
  const auto place = std::lower_bound(names.begin(), names.end(), name);
  if (place == names.end() || *place != name) names.insert(place, name);
}

/// The constant that a node has for an argument of its schema; empty when the argument is computed.
std::optional<c10::IValue> constant(const Node& node, const char* argument) {
  const auto position = node.schema().argumentIndexWithName(argument);
  if (!position) return std::nullopt;
  return torch::jit::toIValue(node.input(static_cast<size_t>(*position)));
}

/// Whether a dropout drops nothing, so that it is the same in both modes.
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

/// Reads the graph of a script's forward method, including all functions that it calls.
ScriptGraph read_graph(const torch::jit::Module& script) {
  const auto graph = script.get_method("forward").graph()->copy();
  torch::jit::Inline(*graph);
  ScriptGraph found;
  read_block(*graph->block(), found);
  return found;
}

/// `(x: Tensor, scale: float)`.
std::string describe_arguments(const c10::FunctionSchema& schema) {
  std::vector<std::string> texts;
  for (size_t i = 1; i < schema.arguments().size(); ++i) {  // the first is self
    const auto& argument = schema.arguments()[i];
    texts.push_back(argument.name() + ": " + argument.type()->repr_str());
  }
  return fmt::format("({})", fmt::join(texts, ", "));
}

/// A part of a script, with its parameters and buffers under their names.
class Part : public torch::nn::Module {};

/// A module that Python exported with torch.jit.script or torch.jit.trace. This network shares the
/// script's parameters and buffers, the same tensors under the same names.
///
/// The code runs operation by operation, as it was written: TorchScript's optimizer recompiles a
/// function after its first calls, so a resumed run would round differently from an uninterrupted
/// run.
class TorchScript : public Network {
 public:
  struct Params {
    Path path;

    void declare(Parameters& p) { p.require("path", path, "the file that torch.jit.save wrote"); }
  };

  TorchScript(const Params& params, const Config& config)
      : script_(load_script(config, "path")), path_(params.path.text) {
    try {
      check_forward();
      graph_ = read_graph(script_);
      adopt(*this, script_, "");
    } catch (const Error& error) {
      throw config.error("path", error.what());
    }
    script_.train(is_training());  // regardless of the mode in which it was exported
  }

  at::Tensor forward(const at::Tensor& input) override {
    // A graph may save a buffer that `forward` then assigns. So the script gets a separate tensor
    // object that shares the buffer's memory, and the assigned value is copied into the buffer
    // afterwards.
    for (auto& [owner, name, buffer] : assigned_) owner.setattr(name, buffer.detach());
    const torch::jit::GraphOptimizerEnabledGuard as_written(false);
    const c10::IValue output = call(input);
    for (auto& [owner, name, buffer] : assigned_) {
      buffer.set_data(owner.attr(name).toTensor().detach());
    }
    if (output.isTensor()) return output.toTensor();
    throw Error(fmt::format("{}: forward returned no tensor but a {}", path_, output.tagKind()));
  }

  void train(bool on = true) override {
    Network::train(on);
    script_.train(on);
  }

  std::string warning() const override {
    std::vector<std::string> texts;
    for (const bool training : {true, false}) {
      const auto& operations = training ? graph_.training : graph_.evaluation;
      if (operations.empty()) continue;
      texts.push_back(fmt::format(
          "exported in {} mode, which it keeps ({}): torch.jit.script follows the mode, "
          "torch.jit.trace does not",
          training ? "training" : "evaluation", fmt::join(operations, ", ")));
    }
    if (!untracked_.empty()) {
      texts.push_back(fmt::format(
          "forward changes {}, which no checkpoint holds: a resume begins with what the file has; "
          "register_buffer makes a tensor part of the state",
          fmt::join(untracked_, ", ")));
    }
    return texts.empty() ? "" : fmt::format("{}: {}", path_, fmt::join(texts, "\n  "));
  }

 private:
  /// A buffer to which `forward` assigns.
  struct Buffer {
    torch::jit::Module owner;
    std::string name;
    at::Tensor tensor;
  };

  Error error(const std::string& problem) const { return Error(path_ + ": " + problem); }

  void check_forward() const {
    const auto method = script_.find_method("forward");
    if (!method) throw error("the module has no method forward");
    const c10::FunctionSchema& schema = method->function().getSchema();
    const auto& arguments = schema.arguments();
    const auto needed = std::count_if(arguments.begin() + 1, arguments.end(), [](const auto& one) {
      return !one.default_value().has_value();
    });
    const bool takes_tensor = arguments.size() > 1 && needed <= 1 &&
                              c10::TensorType::get()->isSubtypeOf(*arguments[1].type());
    if (!takes_tensor) {
      throw error(
          fmt::format("forward takes {}; a network is given one tensor: export a module "
                      "whose forward takes (x: Tensor), more only with defaults",
                      describe_arguments(schema)));
    }
    const auto& result = schema.returns().at(0).type();
    if (!c10::TensorType::get()->isSubtypeOf(*result)) {
      throw error(
          fmt::format("forward returns {}; a network returns one tensor", result->repr_str()));
    }
  }

  /// Registers the tensors of `script` in `part`, and the tensors of its submodules in parts below
  /// `part`.
  void adopt(torch::nn::Module& part, const torch::jit::Module& script, const std::string& prefix) {
    const auto type = script.type();
    for (size_t slot = 0; slot < type->numAttributes(); ++slot) {
      const std::string name = type->getAttributeName(slot);
      const c10::IValue value = script._ivalue()->getSlot(slot);
      const bool is_assigned = graph_.is_partial || is_assigned_to(type, name);
      if (value.isModule() && type->getAttribute(slot)->is_module()) {
        const auto inner = std::make_shared<Part>();
        adopt(*part.register_module(name, inner), value.toModule(), prefix + name + ".");
      } else if (type->is_parameter(slot) && is_tensor(value)) {
        if (is_assigned_to(type, name)) {
          throw error(
              fmt::format("forward assigns to the parameter {}{}: parameters are changed by "
                          "optimizers; make it a buffer",
                          prefix, name));
        }
        const at::Tensor& parameter = value.toTensor();
        part.register_parameter(name, parameter, parameter.requires_grad());
      } else if (type->is_buffer(slot) && is_tensor(value)) {
        part.register_buffer(name, value.toTensor());
        if (is_assigned) assigned_.push_back({script, name, value.toTensor()});
      } else if (is_assigned_to(type, name)) {
        untracked_.push_back(prefix + name);
      }
    }
  }

  static bool is_tensor(const c10::IValue& value) {
    return value.isTensor() && value.toTensor().defined();
  }

  bool is_assigned_to(const c10::ClassTypePtr& owner, const std::string& name) const {
    return std::any_of(graph_.assigned.begin(), graph_.assigned.end(), [&](const auto& assigned) {
      return assigned.name == name && assigned.owner == owner;
    });
  }

  c10::IValue call(const at::Tensor& input) {
    try {
      return script_.forward({input});
    } catch (const std::exception& error) {
      throw Error(fmt::format("{}: {}", path_, error_text(error)));
    }
  }

  torch::jit::Module script_;
  std::string path_;
  ScriptGraph graph_;
  std::vector<Buffer> assigned_;
  std::vector<std::string> untracked_;
};

STEPOP_REGISTER_MODEL(TorchScript,
                      {"A module from Python, of torch.jit.script or torch.jit.trace."});

}  // namespace
}  // namespace stepop
