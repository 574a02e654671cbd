#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/csrc/jit/runtime/graph_executor.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "models/torch_script/script_file.h"
#include "models/torch_script/script_graph.h"
#include "runtime/base/error.h"
#include "runtime/networks/network.h"

namespace stepop {
namespace {

/// `(x: Tensor, scale: float)`.
std::string describe_arguments(const c10::FunctionSchema& schema) {
  std::vector<std::string> texts;
  for (size_t i = 1; i < schema.arguments().size(); ++i) {  // the first is self
    const auto& argument = schema.arguments()[i];
    texts.push_back(argument.name() + ": " + argument.type()->repr_str());
  }
  return fmt::format("({})", fmt::join(texts, ", "));
}

/// Part of a script with the names of its own parameters and buffers.
class Part : public torch::nn::Module {};

}  // namespace

/// A module that Python exported with torch.jit.script or torch.jit.trace. Its parameters and
/// buffers are this network's, the very same tensors, under the names that it gave them.
///
/// Its code runs operation by operation, as it was written: the optimizer of TorchScript recompiles
/// a function after its first calls, so that a run that resumes would round otherwise than one that
/// went on.
class TorchScript : public Network {
 public:
  explicit TorchScript(const Config& params)
      : script_(load_script(params, "path")), path_(params.get_path("path")) {
    try {
      check_forward();
      graph_ = read_graph(script_);
      adopt(*this, script_, "");
    } catch (const Error& error) {
      throw params.error("path", error.what());
    }
    script_.train(is_training());  // whatever mode it was exported in
  }

  at::Tensor forward(const at::Tensor& input) override {
    // A graph may keep a buffer that is then assigned; so the script is lent a tensor object of its
    // own, which shares the buffer's memory, and the buffer takes what it finds afterwards.
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
  /// A buffer that `forward` assigns to.
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

  /// Registers the tensors of `script` in `part`, and in parts of it those of its submodules.
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

STEPOP_REGISTER_MODEL(TorchScript, {"A module from Python, of torch.jit.script or torch.jit.trace.",
                                    {{"path", "", "the file that torch.jit.save wrote", true}}});

}  // namespace stepop
