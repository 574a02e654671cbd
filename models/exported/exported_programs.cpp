#include "models/exported/exported_programs.h"

#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "runtime/core/base/error.h"
#include "runtime/core/base/number_text.h"
#include "runtime/core/base/text.h"
#include "runtime/core/system/owner.h"

namespace stepop {
namespace {

/// A part of an exported module, with its parameters and buffers under their names.
class ExportedPart : public torch::nn::Module {};

std::vector<std::string> names_of_inputs(const ExportedGraph& graph) {
  std::vector<std::string> names;
  for (const auto& port : graph.inputs()) {
    if (port.kind == ExportedPort::Kind::kInput) names.push_back(port.name);
  }
  return names;
}

/// `head [*, 10] and aux [*, 4]`
std::string ports_text(const std::vector<ExportedPort>& ports, ExportedPort::Kind kind) {
  std::vector<std::string> texts;
  for (const auto& port : ports) {
    if (port.kind != kind) continue;
    std::vector<std::string> sizes;
    for (const int64_t size : port.sizes) sizes.push_back(size < 0 ? "*" : std::to_string(size));
    texts.push_back(fmt::format("{} [{}]", port.name, fmt::join(sizes, ", ")));
  }
  return list_text(texts);
}

int64_t count_outputs(const ExportedGraph& graph) {
  return std::ranges::count(graph.outputs(), ExportedPort::Kind::kOutput, &ExportedPort::kind);
}

torch::nn::Module& part_at(torch::nn::Module& module, const std::string& path) {
  torch::nn::Module* part = &module;
  for (size_t begin = 0; begin <= path.size();) {
    const size_t end = std::min(path.find('.', begin), path.size());
    const std::string name = path.substr(begin, end - begin);
    const auto children = part->named_children();
    const auto* known = children.find(name);
    part = known != nullptr ? known->get()
                            : part->register_module(name, std::make_shared<ExportedPart>()).get();
    begin = end + 1;
  }
  return *part;
}

}  // namespace

bool ExportedContent::is_from_one_to_one() const {
  return names_of_inputs(*graph).size() == 1 && count_outputs(*graph) == 1;
}

ExportedContent read_exported_content(const std::string& path, bool compiled) {
  ExportedContent content{.path = path, .file = read_exported(path, compiled)};
  content.graph = std::make_shared<ExportedGraph>(content.file.program.model);
  if (count_outputs(*content.graph) == 0) throw Error("the network returns no tensor");
  if (!content.file.evaluation) return content;
  content.evaluation = std::make_shared<ExportedGraph>(content.file.evaluation->model);
  if (names_of_inputs(*content.graph) != names_of_inputs(*content.evaluation)) {
    throw Error("its two graphs have other inputs");
  }
  if (count_outputs(*content.graph) != count_outputs(*content.evaluation)) {
    throw Error("its two graphs have other numbers of results");
  }
  return content;
}

ExportedPrograms::ExportedPrograms(const ExportedContent& content, torch::nn::Module& module)
    : path_(content.path), has_compiled_(content.file.has_compiled) {
  graph_ = load(content.file.program, content.graph, module);
  if (content.evaluation) {
    evaluation_ = load(*content.file.evaluation, content.evaluation, module);
  }
}

void ExportedPrograms::use_compiled(const ExportedContent& content) {
  const auto& modes = graph_->graph->training();
  compiled_ = std::make_unique<CompiledPasses>(
      *content.file.compiled, path_, input_names().size(),
      static_cast<size_t>(count_outputs(*graph_->graph)),
      std::ranges::find(modes, "batch_norm") != modes.end(), [&](const std::string& name) {
        if (const auto known = known_.find(name); known != known_.end()) {
          return PassTensor{.tensor = known->second};
        }
        const auto constant = content.file.program.constants.find(name);
        if (constant != content.file.program.constants.end()) {
          return PassTensor{.tensor = constant->second, .is_state = false};
        }
        throw Error(fmt::format("the tensor {} is missing in it", name));
      });
}

OrderedMap<Value> ExportedPrograms::alternatives() const {
  if (compiled_) return {{"compiled", false}};
  if (has_compiled_ && foreign_reason(path_).empty()) return {{"compiled", true}};
  return {};
}

void ExportedPrograms::end_at(const std::string& path) {
  if (compiled_) throw Error(path_ + ": its compiled passes are those of the whole network");
  for (auto* loaded : {&graph_, &evaluation_}) {
    if (!*loaded) continue;
    try {
      (*loaded)->graph = (*loaded)->graph->ending_at(path);
    } catch (const Error& error) {
      throw Error(fmt::format("{} {}", path_, error.what()));
    }
  }
}

std::vector<std::string> ExportedPrograms::input_names() const {
  return names_of_inputs(*graph_->graph);
}

std::string ExportedPrograms::ports() const {
  using Kind = ExportedPort::Kind;
  const auto inputs = static_cast<int64_t>(input_names().size());
  const int64_t results = count_outputs(*graph_->graph);
  std::vector<std::string> texts;
  if (inputs != 1) {
    texts.push_back(fmt::format("{}, {}", counted(inputs, "input"),
                                ports_text(graph_->graph->inputs(), Kind::kInput)));
  }
  if (results != 1) {
    texts.push_back(fmt::format("{}, {}", counted(results, "result"),
                                ports_text(graph_->graph->outputs(), Kind::kOutput)));
  }
  return fmt::format(
      "{} has {}: export a module whose forward {}, or write an iterator that takes "
      "context.network<stepop::MultiNetwork>()",
      path_, fmt::join(texts, "; and "), results == 1 ? "takes one tensor" : "returns one of them");
}

std::vector<at::Tensor> ExportedPrograms::taken(Loaded& loaded,
                                                const std::vector<at::Tensor>& inputs) const {
  const auto& ports = loaded.graph->inputs();
  std::vector<at::Tensor> tensors;
  size_t next = 0;
  for (size_t i = 0; i < ports.size(); ++i) {
    if (ports[i].kind != ExportedPort::Kind::kInput) {
      at::Tensor& tensor = loaded.tensors[i];
      // It is no state of the module, which moves that.
      if (ports[i].kind == ExportedPort::Kind::kConstant && !inputs.empty()) {
        tensor = tensor.to(inputs.front().device());
      }
      tensors.push_back(tensor);
      continue;
    }
    if (next == inputs.size()) break;
    check_sizes(ports[i], inputs[next]);
    tensors.push_back(inputs[next++]);
  }
  if (tensors.size() != ports.size() || next != inputs.size()) {
    throw Error(fmt::format("{}: the network takes {} inputs ({}), and got {}", path_,
                            input_names().size(), fmt::join(input_names(), ", "), inputs.size()));
  }
  return tensors;
}

std::vector<at::Tensor> ExportedPrograms::run(const torch::nn::Module& network,
                                              const std::vector<at::Tensor>& inputs,
                                              bool training) {
  Loaded& loaded = !training && evaluation_ ? *evaluation_ : *graph_;
  const std::vector<at::Tensor> tensors = taken(loaded, inputs);
  try {
    loaded.limits.check(inputs);
    if (compiled_ && compiled_->can_run(inputs, training)) {
      return compiled_->run(network, inputs, training);
    }
    return finished(loaded, loaded.graph->run(tensors));
  } catch (const std::exception& error) {
    throw Error(fmt::format("{}: {}", path_, error_text(error)));
  }
}

std::string ExportedPrograms::warning() const {
  std::vector<std::string> texts;
  const auto& training = graph_->graph->training();
  const auto& evaluation = graph_->graph->evaluation();
  if (!evaluation_ && (!training.empty() || !evaluation.empty())) {
    texts.push_back(fmt::format(
        "exported in {} mode, which it keeps ({}): python -m stepop.eval.export writes both",
        training.empty() ? "evaluation" : "training",
        fmt::join(training.empty() ? evaluation : training, ", ")));
  }
  std::vector<std::string> unread = graph_->limits.unread();
  if (evaluation_) {
    for (const auto& limit : evaluation_->limits.unread()) {
      if (std::ranges::find(unread, limit) == unread.end()) unread.push_back(limit);
    }
  }
  if (!unread.empty()) {
    texts.push_back(fmt::format(
        "it holds for {}, which is not understood here and not checked: where sizes differ from "
        "those of the export, compare with PyTorch",
        list_text(unread)));
  }
  if (const auto& written = graph_->graph->written_constants(); !written.empty()) {
    texts.push_back(
        fmt::format("forward changes {}, which no checkpoint holds, so that a resume has other "
                    "numbers: python "
                    "-m stepop.eval.export makes it part of the state",
                    list_text(written)));
  }
  return texts.empty() ? "" : fmt::format("{}: {}", path_, fmt::join(texts, "\n  "));
}

/// The tensors of a program, registered in the module unless they are there.
ExportedPrograms::Loaded ExportedPrograms::load(const ExportedProgram& program,
                                                const std::shared_ptr<ExportedGraph>& graph,
                                                torch::nn::Module& module) {
  Loaded loaded{.graph = graph,
                .tensors = {},
                .mutated = {},
                .limits = ExportedLimits(program.model, graph->inputs())};
  for (const auto& port : loaded.graph->inputs()) {
    loaded.tensors.push_back(tensor_of(port, program, module));
  }
  for (const auto& port : loaded.graph->outputs()) {
    const auto found = known_.find(port.name);
    const bool is_mutation = port.kind == ExportedPort::Kind::kMutation;
    if (is_mutation && found == known_.end()) {
      throw Error(fmt::format("the buffer {} that it changes is missing", port.name));
    }
    loaded.mutated.push_back(is_mutation ? found->second : at::Tensor());
  }
  const auto parts = module.named_modules("", /*include_self=*/false);
  graph->find_modules([&](const std::string& path) {
    const auto* part = parts.find(path);
    return part == nullptr ? nullptr : part->get();
  });
  return loaded;
}

at::Tensor ExportedPrograms::tensor_of(const ExportedPort& port, const ExportedProgram& program,
                                       torch::nn::Module& module) {
  if (port.kind == ExportedPort::Kind::kInput) return {};
  const bool is_constant = port.kind == ExportedPort::Kind::kConstant;
  if (!is_constant) {
    if (const auto known = known_.find(port.name); known != known_.end()) return known->second;
  }
  const auto& tensors = is_constant ? program.constants : program.weights;
  const auto found = tensors.find(port.name);
  if (found == tensors.end()) {
    throw Error(fmt::format("the tensor {} is missing in it", port.name));
  }
  if (is_constant) return found->second;  // no state, so not in checkpoints
  known_[port.name] = found->second;
  const size_t dot = port.name.rfind('.');
  torch::nn::Module& part =
      dot == std::string::npos ? module : part_at(module, port.name.substr(0, dot));
  const std::string name = port.name.substr(dot + 1);
  if (port.kind == ExportedPort::Kind::kParameter) {
    part.register_parameter(name, found->second, found->second.requires_grad());
  } else {
    part.register_buffer(name, found->second);
  }
  return found->second;
}

void ExportedPrograms::check_sizes(const ExportedPort& port, const at::Tensor& input) const {
  bool fits = input.dim() == static_cast<int64_t>(port.sizes.size());
  for (size_t i = 0; fits && i < port.sizes.size(); ++i) {
    fits = port.sizes[i] < 0 || port.sizes[i] == input.size(static_cast<int64_t>(i));
  }
  if (fits) return;
  const bool is_of_batch = !port.sizes.empty() && port.sizes[0] >= 0 && input.dim() > 0 &&
                           port.sizes[0] != input.size(0);
  throw Error(fmt::format(
      "{}: it was exported for an input {}, and got [{}]; {}", path_,
      ports_text({port}, ExportedPort::Kind::kInput), fmt::join(input.sizes(), ", "),
      is_of_batch
          ? "python -m stepop.eval.export exports a network with a free batch size"
          : "its code, or torch.export, needs these sizes: export it with an --example of what "
            "the dataset gives, or resize that"));
}

std::vector<at::Tensor> ExportedPrograms::finished(const Loaded& loaded,
                                                   std::vector<at::Tensor> results) const {
  std::vector<at::Tensor> outputs;
  for (size_t i = 0; i < results.size(); ++i) {
    if (!loaded.mutated[i].defined()) {
      outputs.push_back(std::move(results[i]));
      continue;
    }
    const at::NoGradGuard no_grad;
    at::Tensor buffer = loaded.mutated[i];
    buffer.copy_(results[i]);
  }
  return outputs;
}

}  // namespace stepop
