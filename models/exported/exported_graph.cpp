#include "models/exported/exported_graph.h"

#include <ATen/ScalarOps.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include "models/exported/symbolic_operators.h"
#include "runtime/core/base/error.h"
#include "runtime/core/base/json_text.h"

namespace stepop {

using c10::IValue;
using Json = nlohmann::json;

/// An argument of an operation.
struct ExportedGraph::Operand {
  enum class Kind { kConstant, kSlot, kDevice, kTensors, kOptionalTensors, kInts };
  Kind kind = Kind::kConstant;
  IValue constant;
  size_t slot = 0;
  std::vector<Operand> parts;  ///< Of a list.
};

struct ExportedGraph::Step {
  std::string name;    ///< Of the operation: `aten::conv2d`.
  std::string module;  ///< The module that calls it: `layer1.0.conv1 (Conv2d)`.
  std::optional<c10::OperatorHandle> call;
  SymbolicOperator arithmetic = nullptr;
  std::vector<Operand> operands;  ///< In the order of the schema.
  std::vector<size_t> results;
  bool returns_list = false;  ///< `results` are the parts of one list.
  std::vector<size_t> freed;  ///< The slots that no later step reads.
};

namespace {

constexpr size_t kNowhere = static_cast<size_t>(-1);

/// The argument's kind, such as `as_ints`, and its value.
std::pair<std::string, const Json*> only(const Json& argument) {
  if (!argument.is_object() || argument.size() != 1) throw Error("an argument cannot be read");
  return {argument.begin().key(), &argument.begin().value()};
}

/// The innermost module: `layer1.0.conv1 (Conv2d)`.
std::string module_of(const Json& node) {
  if (!node.contains("metadata")) return "";
  const std::string stack = node.at("metadata").value("nn_module_stack", "");
  const std::string last = stack.substr(stack.rfind(';') + 1);  // key,path,class
  const size_t first_comma = last.find(',');
  const size_t second_comma = last.find(',', first_comma + 1);
  if (second_comma == std::string::npos) return "";
  const std::string path = last.substr(first_comma + 1, second_comma - first_comma - 1);
  const std::string kind = last.substr(last.rfind('.') + 1);
  return path.empty() ? kind : fmt::format("{} ({})", path, kind);
}

std::string in_module(const std::string& module) {
  return module.empty() ? "" : fmt::format(" of {}", module);
}

/// `torch.ops.aten.flatten.using_ints` as `aten::flatten` and `using_ints`.
std::optional<c10::OperatorName> operator_name(std::string_view target) {
  constexpr std::string_view kBegin = "torch.ops.";
  if (!target.starts_with(kBegin)) return std::nullopt;
  target.remove_prefix(kBegin.size());
  const size_t space_end = target.find('.');
  const size_t overload = target.rfind('.');
  if (space_end == std::string_view::npos || overload == space_end) return std::nullopt;
  const std::string_view name = target.substr(space_end + 1, overload - space_end - 1);
  const std::string_view last = target.substr(overload + 1);
  return c10::OperatorName(fmt::format("{}::{}", target.substr(0, space_end), name),
                           last == "default" ? "" : std::string(last));
}

/// A check of sizes at the time of the export, which needs no call.
bool is_assertion(std::string_view target) {
  constexpr std::string_view kAten = "torch.ops.aten.";
  if (!target.starts_with(kAten)) return false;
  target.remove_prefix(kAten.size());
  return target.starts_with("_assert") || target.starts_with("sym_constrain_range");
}

c10::TypePtr inner_type(const c10::Argument& argument) {
  c10::TypePtr type = argument.real_type();
  if (const auto optional = type->cast<c10::OptionalType>()) type = optional->getElementType();
  return type;
}

/// The value as the operation's schema wants it: a number for a tensor is wrapped, a whole number
/// for a float is converted, one number for a list is repeated.
IValue fitted(IValue value, const c10::Argument& argument) {
  const c10::TypePtr type = inner_type(argument);
  const bool is_number = value.isInt() || value.isDouble() || value.isBool();
  if (type->kind() == c10::TypeKind::TensorType && is_number) {
    return at::native::wrapped_scalar_tensor(value.toScalar());
  }
  if (type->kind() == c10::TypeKind::FloatType && value.isInt()) {
    return static_cast<double>(value.toInt());
  }
  const auto list = type->cast<c10::ListType>();
  if (!list) return value;
  const c10::TypeKind element = list->getElementType()->kind();
  const bool wants_floats = element == c10::TypeKind::FloatType;
  if (is_number) {
    const auto count = static_cast<size_t>(argument.N().value_or(1));
    if (wants_floats) return std::vector<double>(count, value.toScalar().toDouble());
    return std::vector<int64_t>(count, value.toInt());
  }
  if (wants_floats && value.isIntList()) {
    const auto whole = value.toIntVector();
    return std::vector<double>(whole.begin(), whole.end());
  }
  return value;
}

/// A number; torch.export writes those that JSON lacks as texts.
double number_of(const Json& value) {
  if (!value.is_string()) return value.get<double>();
  const auto& text = value.get_ref<const std::string&>();
  if (const auto number = non_finite_number(text)) return *number;
  throw Error(fmt::format("\"{}\" is no number", text));
}

int64_t memory_format_of(int64_t number) {
  constexpr std::array formats = {c10::MemoryFormat::Contiguous, c10::MemoryFormat::Contiguous,
                                  c10::MemoryFormat::ChannelsLast,
                                  c10::MemoryFormat::ChannelsLast3d, c10::MemoryFormat::Preserve};
  return static_cast<int64_t>(formats.at(static_cast<size_t>(number)));
}

}  // namespace

ExportedGraph::~ExportedGraph() = default;

size_t ExportedGraph::slot(const std::string& name) {
  return slots_.try_emplace(name, slots_.size()).first->second;
}

size_t ExportedGraph::known_slot(const Json& argument) const {
  const std::string name =
      argument.is_object() ? argument.value("name", argument.value("as_name", "")) : "";
  const auto found = slots_.find(name);
  if (found == slots_.end()) throw Error(fmt::format("the value \"{}\" is not there", name));
  return found->second;
}

ExportedGraph::Operand ExportedGraph::read_operand(const Json& argument) const {
  const auto constant = [](IValue value) {
    return Operand{.kind = Operand::Kind::kConstant, .constant = std::move(value), .parts = {}};
  };
  const auto list = [&](Operand::Kind kind, const Json& values, auto read) {
    Operand operand{.kind = kind, .constant = {}, .parts = {}};
    for (const auto& value : values) operand.parts.push_back(read(value));
    return operand;
  };
  const auto at_slot = [&](const Json& value) {
    return Operand{
        .kind = Operand::Kind::kSlot, .constant = {}, .slot = known_slot(value), .parts = {}};
  };
  const auto sized = [&](const Json& value) {
    if (value.contains("as_name")) return at_slot(value);
    const Json& number = value.begin().value();
    return constant(number.is_boolean()          ? IValue(number.get<bool>())
                    : number.is_number_integer() ? IValue(number.get<int64_t>())
                                                 : IValue(number_of(number)));
  };
  const auto [kind, value] = only(argument);
  if (kind == "as_none") return constant({});
  if (kind == "as_tensor") return at_slot(*value);
  if (kind == "as_bool") return constant(value->get<bool>());
  if (kind == "as_int") return constant(value->get<int64_t>());
  if (kind == "as_float") return constant(number_of(*value));
  if (kind == "as_string") return constant(value->get<std::string>());
  if (kind == "as_ints") return constant(value->get<std::vector<int64_t>>());
  if (kind == "as_floats") {
    std::vector<double> numbers;
    for (const auto& each : *value) numbers.push_back(number_of(each));
    return constant(numbers);
  }
  if (kind == "as_bools") {
    c10::List<bool> bools;
    for (const auto& each : *value) bools.push_back(each.get<bool>());
    return constant(bools);
  }
  if (kind == "as_sym_int" || kind == "as_sym_float" || kind == "as_sym_bool") {
    return sized(*value);
  }
  if (kind == "as_sym_ints") return list(Operand::Kind::kInts, *value, sized);
  if (kind == "as_tensors") return list(Operand::Kind::kTensors, *value, at_slot);
  if (kind == "as_optional_tensor") {
    return value->contains("as_none") ? constant({}) : at_slot(value->at("as_tensor"));
  }
  if (kind == "as_optional_tensors") {
    return list(Operand::Kind::kOptionalTensors, *value, [&](const Json& each) {
      return each.contains("as_none") ? constant({}) : at_slot(each.at("as_tensor"));
    });
  }
  if (kind == "as_scalar_type") {
    return constant(static_cast<int64_t>(exported_type(value->get<int64_t>())));
  }
  if (kind == "as_memory_format") return constant(memory_format_of(value->get<int64_t>()));
  if (kind == "as_layout") return constant(static_cast<int64_t>(c10::Layout::Strided));
  if (kind == "as_device") {
    return {.kind = Operand::Kind::kDevice, .constant = {}, .parts = {}};
  }
  throw Error(fmt::format("an argument of the kind {} is not supported", kind));
}

void ExportedGraph::read_outputs_of(const Json& node, Step& step) {
  for (const auto& output : node.at("outputs")) {
    const auto [kind, value] = only(output);
    if (kind == "as_tensors") {
      step.returns_list = true;
      for (const auto& part : *value) step.results.push_back(slot(part.at("name")));
    } else if (value->is_object() && (value->contains("name") || value->contains("as_name"))) {
      step.results.push_back(slot(value->value("name", value->value("as_name", ""))));
    } else {
      step.results.push_back(kNowhere);
    }
  }
  if (step.returns_list && node.at("outputs").size() != 1) {
    throw Error("several results, one of which is a list, are not supported");
  }
}

ExportedGraph::Step ExportedGraph::read_step(const Json& node) {
  Step step;
  const auto target = node.at("target").get<std::string>();
  step.name = target;
  step.module = module_of(node);
  const Json& inputs = node.at("inputs");
  if (const auto name = operator_name(target)) {
    step.name = name->overload_name.empty() ? name->name
                                            : fmt::format("{}.{}", name->name, name->overload_name);
    step.call = c10::Dispatcher::singleton().findSchema(*name);
    if (!step.call) throw Error("there is no such operation here");
    std::map<std::string, const Json*> given;
    for (const auto& input : inputs) given[input.at("name")] = &input.at("arg");
    for (const auto& argument : step.call->schema().arguments()) {
      const auto found = given.find(argument.name());
      if (found == given.end()) {
        if (!argument.default_value()) {
          throw Error(fmt::format("its argument {} is missing", argument.name()));
        }
        step.operands.push_back(
            {.kind = Operand::Kind::kConstant, .constant = *argument.default_value(), .parts = {}});
        continue;
      }
      Operand operand = read_operand(*found->second);
      if (operand.kind == Operand::Kind::kConstant) {
        operand.constant = fitted(std::move(operand.constant), argument);
      }
      step.operands.push_back(std::move(operand));
      given.erase(found);
    }
    if (!given.empty()) {
      throw Error(fmt::format("it has no argument {} here", given.begin()->first));
    }
  } else {
    step.arithmetic = find_symbolic_operator(target, inputs.size());
    if (step.arithmetic == nullptr) throw Error("there is no such operation here");
    for (const auto& input : inputs) step.operands.push_back(read_operand(input.at("arg")));
  }
  read_outputs_of(node, step);
  return step;
}

void ExportedGraph::read_inputs(const Json& signature, const Json& values) {
  for (const auto& spec : signature.at("input_specs")) {
    const auto [kind, value] = only(spec);
    ExportedPort port{.kind = ExportedPort::Kind::kInput, .name = {}};
    Json argument = value->at("arg");
    if (kind == "parameter") {
      port = {.kind = ExportedPort::Kind::kParameter, .name = value->at("parameter_name")};
    } else if (kind == "buffer") {
      port = {.kind = value->at("persistent").get<bool>() ? ExportedPort::Kind::kBuffer
                                                          : ExportedPort::Kind::kConstant,
              .name = value->at("buffer_name")};
    } else if (kind == "tensor_constant") {
      port = {.kind = ExportedPort::Kind::kConstant, .name = value->at("tensor_constant_name")};
    } else if (kind == "user_input") {
      if (!argument.contains("as_tensor")) {
        throw Error("an input of the network is no tensor; a network gets tensors alone");
      }
      argument = argument.at("as_tensor");
      port.name = argument.at("name");
      for (const auto& size : values.at(port.name).at("sizes")) {
        port.sizes.push_back(size.contains("as_int") ? size.at("as_int").get<int64_t>() : -1);
      }
    } else {
      throw Error(fmt::format("an input of the kind {} is not supported", kind));
    }
    input_slots_.push_back(slot(argument.at("name")));
    inputs_.push_back(std::move(port));
  }
}

void ExportedGraph::read_outputs(const Json& signature) {
  for (const auto& spec : signature.at("output_specs")) {
    const auto [kind, value] = only(spec);
    if (kind == "user_output") {
      const Json& argument = value->at("arg");
      if (argument.contains("as_none")) continue;
      if (!argument.contains("as_tensor")) throw Error("a result of the network is no tensor");
      outputs_.push_back({.kind = ExportedPort::Kind::kOutput, .name = {}});
      output_slots_.push_back(known_slot(argument.at("as_tensor")));
    } else if (kind == "buffer_mutation") {
      outputs_.push_back({.kind = ExportedPort::Kind::kMutation, .name = value->at("buffer_name")});
      output_slots_.push_back(known_slot(value->at("arg")));
    } else {
      throw Error(fmt::format("a result of the kind {} is not supported", kind));
    }
  }
}

void ExportedGraph::note_mode(const Step& step) {
  if (!step.call) return;
  const auto& arguments = step.call->schema().arguments();
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& name = arguments[i].name();
    const IValue& value = step.operands[i].constant;
    const bool drops_nothing = (name == "p" || name == "dropout") && value.isDouble() &&
                               value.toDouble() == 0 && step.name != "aten::batch_norm";
    if (drops_nothing) return;
    if ((name != "training" && name != "train") || !value.isBool()) continue;
    auto& names = value.toBool() ? training_ : evaluation_;
    const std::string short_name = step.name.substr(step.name.rfind(':') + 1);
    const auto place = std::ranges::lower_bound(names, short_name);
    if (place == names.end() || *place != short_name) names.insert(place, short_name);
  }
}

/// A step frees what it reads last, so that memory is as in Python.
void ExportedGraph::free_after_use() {
  std::vector<bool> is_needed(slots_.size(), false);
  for (const size_t slot : output_slots_) is_needed[slot] = true;
  for (auto step = steps_.rbegin(); step != steps_.rend(); ++step) {
    const auto note = [&](const Operand& operand, const auto& self) -> void {
      if (operand.kind == Operand::Kind::kSlot && !is_needed[operand.slot]) {
        is_needed[operand.slot] = true;
        step->freed.push_back(operand.slot);
      }
      for (const auto& part : operand.parts) self(part, self);
    };
    for (const size_t result : step->results) {
      if (result != kNowhere && !is_needed[result]) {
        is_needed[result] = true;
        step->freed.push_back(result);
      }
    }
    for (const auto& operand : step->operands) note(operand, note);
  }
}

ExportedGraph::ExportedGraph(const Json& model) {
  const Json& module = model.at("graph_module");
  const Json& graph = module.at("graph");
  read_inputs(module.at("signature"), graph.at("tensor_values"));
  for (const auto& node : graph.at("nodes")) {
    const auto target = node.at("target").get<std::string>();
    if (is_assertion(target)) continue;
    try {
      steps_.push_back(read_step(node));
    } catch (const Error& error) {
      throw Error(fmt::format("{}{}: {}", target, in_module(module_of(node)), error.what()));
    }
    note_mode(steps_.back());
  }
  read_outputs(module.at("signature"));
  free_after_use();
}

std::vector<at::Tensor> ExportedGraph::run(const std::vector<at::Tensor>& inputs) const {
  std::vector<IValue> values(slots_.size());
  c10::Device device = c10::kCPU;
  for (size_t i = 0; i < inputs.size(); ++i) {
    values[input_slots_[i]] = inputs[i];
    if (inputs_[i].kind == ExportedPort::Kind::kInput) device = inputs[i].device();
  }
  const auto value_of = [&](const Operand& operand) -> IValue {
    switch (operand.kind) {
      case Operand::Kind::kConstant:
        return operand.constant;
      case Operand::Kind::kSlot:
        return values[operand.slot];
      case Operand::Kind::kDevice:
        return device;
      case Operand::Kind::kTensors: {
        c10::List<at::Tensor> tensors;
        for (const auto& part : operand.parts) tensors.push_back(values[part.slot].toTensor());
        return tensors;
      }
      case Operand::Kind::kOptionalTensors: {
        c10::List<std::optional<at::Tensor>> tensors;
        for (const auto& part : operand.parts) {
          const bool is_none = part.kind == Operand::Kind::kConstant;
          tensors.push_back(is_none ? std::optional<at::Tensor>()
                                    : std::optional(values[part.slot].toTensor()));
        }
        return tensors;
      }
      case Operand::Kind::kInts: {
        std::vector<int64_t> numbers;
        for (const auto& part : operand.parts) {
          numbers.push_back(
              (part.kind == Operand::Kind::kSlot ? values[part.slot] : part.constant).toInt());
        }
        return numbers;
      }
    }
    throw Error("an operand of an unknown kind");
  };
  torch::jit::Stack stack;
  for (const auto& step : steps_) {
    try {
      stack.clear();
      for (size_t i = 0; i < step.operands.size(); ++i) {
        const Operand& operand = step.operands[i];
        stack.push_back(value_of(operand));
        if (step.call && operand.kind == Operand::Kind::kSlot && !stack.back().isTensor()) {
          stack.back() = fitted(std::move(stack.back()), step.call->schema().arguments()[i]);
        }
      }
      if (step.call) {
        step.call->callBoxed(stack);
      } else {
        stack = {step.arithmetic(stack)};
      }
      if (step.returns_list) {
        const auto parts = stack.at(0).toTensorVector();
        stack.assign(parts.begin(), parts.end());
      }
      if (stack.size() < step.results.size()) throw Error("it returned too few results");
      for (size_t i = 0; i < step.results.size(); ++i) {
        if (step.results[i] != kNowhere) values[step.results[i]] = std::move(stack[i]);
      }
      for (const size_t slot : step.freed) values[slot] = {};
    } catch (const std::exception& error) {
      throw Error(fmt::format("{}{}: {}", step.name, in_module(step.module), error_text(error)));
    }
  }
  std::vector<at::Tensor> outputs;
  for (const size_t slot : output_slots_) outputs.push_back(values[slot].toTensor());
  return outputs;
}

}  // namespace stepop
