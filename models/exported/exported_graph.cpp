#include "models/exported/exported_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "models/exported/exported_file.h"
#include "models/exported/exported_reader.h"
#include "runtime/core/base/error.h"
#include "runtime/core/base/text.h"

namespace stepop {

using c10::IValue;
using Json = nlohmann::json;

namespace {

/// The sizes of a tensor of the graph, -1 where they are free.
std::vector<int64_t> sizes_of(const Json& tensor) {
  std::vector<int64_t> sizes;
  for (const auto& size : tensor.at("sizes")) {
    sizes.push_back(size.contains("as_int") ? whole_number(size.at("as_int")) : -1);
  }
  return sizes;
}

/// Reads the inputs, and the names of their values.
std::vector<ExportedPort> read_inputs(const Json& signature, const Json& tensors,
                                      ExportedValues& values) {
  using Kind = ExportedPort::Kind;
  std::vector<ExportedPort> inputs;
  for (const auto& spec : signature.at("input_specs")) {
    const auto [kind, value] = kind_and_value(spec);
    ExportedPort port{.kind = Kind::kInput};
    Json argument = value->at("arg");
    if (kind == "parameter") {
      port = {.kind = Kind::kParameter, .name = value->at("parameter_name")};
    } else if (kind == "buffer") {
      port = {.kind = value->at("persistent").get<bool>() ? Kind::kBuffer : Kind::kConstant,
              .name = value->at("buffer_name")};
    } else if (kind == "tensor_constant") {
      port = {.kind = Kind::kConstant, .name = value->at("tensor_constant_name")};
    } else if (kind == "user_input") {
      if (!argument.contains("as_tensor")) {
        throw Error("an input of the network is no tensor; a network gets tensors alone");
      }
      argument = argument.at("as_tensor");
      port.name = argument.at("name");
      port.sizes = sizes_of(tensors.at(port.name));
    } else {
      throw Error(fmt::format("an input of the kind {} is not supported", kind));
    }
    values.inputs.push_back(argument.at("name"));
    if (port.kind != Kind::kInput) values.state.push_back(values.inputs.back());
    inputs.push_back(std::move(port));
  }
  return inputs;
}

/// Reads the results, and the names of their values.
std::vector<ExportedPort> read_outputs(const Json& signature, const Json& tensors,
                                       ExportedValues& values) {
  std::vector<ExportedPort> outputs;
  for (const auto& spec : signature.at("output_specs")) {
    const auto [kind, value] = kind_and_value(spec);
    const Json& argument = value->at("arg");
    if (kind == "user_output") {
      if (argument.contains("as_none")) continue;
      if (!argument.contains("as_tensor")) throw Error("a result of the network is no tensor");
      const std::string name = argument.at("as_tensor").at("name");
      outputs.push_back({.kind = ExportedPort::Kind::kOutput, .name = name});
      if (tensors.contains(name)) outputs.back().sizes = sizes_of(tensors.at(name));
      values.outputs.push_back(name);
    } else if (kind == "buffer_mutation") {
      outputs.push_back({.kind = ExportedPort::Kind::kMutation, .name = value->at("buffer_name")});
      values.outputs.push_back(argument.at("name"));
    } else {
      throw Error(fmt::format("a result of the kind {} is not supported", kind));
    }
  }
  return outputs;
}

/// The mode that an operation has, where it drops or normalizes otherwise in training.
std::optional<bool> training_of(const ExportedOperation& operation) {
  if (!operation.call) return std::nullopt;
  const auto& arguments = operation.call->schema().arguments();
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& name = arguments[i].name();
    const IValue& value = operation.operands[i].constant;
    const bool drops_nothing = (name == "p" || name == "dropout") && value.isDouble() &&
                               value.toDouble() == 0 && operation.name != "aten::batch_norm";
    if (drops_nothing) return std::nullopt;
    if ((name == "training" || name == "train") && value.isBool()) return value.toBool();
  }
  return std::nullopt;
}

}  // namespace

void ExportedGraph::note_modes(const ExportedOperations& operations) {
  for (const auto& operation : operations.operations) {
    if (operation.block) {
      for (const auto& graph : operation.block->graphs) note_modes(*graph);
    }
    const auto training = training_of(operation);
    if (!training) continue;
    auto& names = *training ? training_ : evaluation_;
    const std::string short_name = operation.name.substr(operation.name.rfind(':') + 1);
    const auto place = std::ranges::lower_bound(names, short_name);
    if (place == names.end() || *place != short_name) names.insert(place, short_name);
  }
}

void ExportedGraph::note_written_constants() {
  const auto is_written = [&](size_t slot) {
    return std::ranges::any_of(operations_->operations, [&](const ExportedOperation& operation) {
      for (size_t i = 0; operation.call && i < operation.operands.size(); ++i) {
        const ExportedOperand& operand = operation.operands[i];
        const auto* alias = operation.call->schema().arguments()[i].alias_info();
        const bool writes = alias != nullptr && alias->isWrite();
        if (writes && operand.kind == ExportedOperand::Kind::kSlot && operand.slot == slot) {
          return true;
        }
      }
      return false;
    });
  };
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (inputs_[i].kind == ExportedPort::Kind::kConstant && is_written(operations_->inputs[i])) {
      written_constants_.push_back(inputs_[i].name);
    }
  }
}

ExportedGraph::ExportedGraph(const Json& model) {
  const Json& module = model.at("graph_module");
  const Json& graph = module.at("graph");
  const Json& signature = module.at("signature");
  ExportedValues values;
  inputs_ = read_inputs(signature, graph.at("tensor_values"), values);
  outputs_ = read_outputs(signature, graph.at("tensor_values"), values);
  operations_ = read_operations(graph, values);
  note_modes(*operations_);
  note_written_constants();
}

void ExportedGraph::find_modules(
    const std::function<const torch::nn::Module*(const std::string&)>& module_at) {
  for (auto& call : operations_->module_calls) call.module = module_at(call.path);
}

std::shared_ptr<ExportedGraph> ExportedGraph::ending_at(const std::string& path) const {
  const auto& calls = operations_->module_calls;
  const auto last = std::find_if(calls.rbegin(), calls.rend(),
                                 [&](const auto& call) { return call.path == path; });
  if (last == calls.rend()) {
    std::vector<std::string> paths;
    for (const auto& call : calls) {
      if (std::ranges::find(paths, call.path) == paths.end()) paths.push_back(call.path);
    }
    throw Error(fmt::format("calls no layer \"{}\"; there are: {}", path,
                            paths.empty() ? "none" : list_text(paths)));
  }
  if (last->results.size() != 1) {
    throw Error(
        fmt::format("the layer \"{}\" gives {} values; one is needed", path, last->results.size()));
  }
  const size_t slot = last->results.front();
  auto ending = std::make_shared<ExportedGraph>(*this);
  ending->operations_ = std::make_shared<ExportedOperations>(*operations_);
  ExportedOperations& operations = *ending->operations_;
  for (size_t i = 0; i < outputs_.size(); ++i) {
    if (outputs_[i].kind != ExportedPort::Kind::kOutput) continue;
    operations.outputs[i] = slot;
    ending->outputs_[i] = {.kind = ExportedPort::Kind::kOutput, .name = path};
  }
  for (auto& operation : operations.operations) operation.freed.clear();
  operations.free_after_use();
  for (auto& call : operations.module_calls) {
    const auto begin = operations.operations.begin();
    const bool makes_it = std::any_of(begin + call.begin, begin + call.end, [&](const auto& one) {
      return std::ranges::find(one.results, slot) != one.results.end();
    });
    const bool is_left = std::ranges::find(call.results, slot) != call.results.end();
    if (makes_it && !is_left) call.results.push_back(slot);
  }
  return ending;
}

std::vector<at::Tensor> ExportedGraph::run(const std::vector<at::Tensor>& inputs) const {
  c10::Device device = c10::kCPU;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs_.at(i).kind == ExportedPort::Kind::kInput) device = inputs[i].device();
  }
  std::vector<at::Tensor> outputs;
  for (const auto& value : operations_->run({inputs.begin(), inputs.end()}, device)) {
    outputs.push_back(value.toTensor());
  }
  return outputs;
}

}  // namespace stepop
