#include "models/exported/exported_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string_view>

#include "models/exported/exported_file.h"
#include "runtime/core/base/error.h"
#include "runtime/core/base/json_text.h"

namespace stepop {

using c10::IValue;
using Json = nlohmann::json;

std::pair<std::string, const Json*> kind_and_value(const Json& argument) {
  if (!argument.is_object() || argument.size() != 1) throw Error("an argument cannot be read");
  return {argument.begin().key(), &argument.begin().value()};
}

namespace {

/// A module that was being called: its path, and the key of the call, which differs for each call
/// of one module.
struct ModuleFrame {
  std::string key, path, kind;
};

/// From the outermost module to the innermost.
std::vector<ModuleFrame> module_stack(const Json& node) {
  std::vector<ModuleFrame> stack;
  if (!node.contains("metadata")) return stack;
  const std::string text = node.at("metadata").value("nn_module_stack", "");
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(';', begin), text.size());
    const std::string entry = text.substr(begin, end - begin);  // key,path,class
    begin = end + 1;
    const size_t first_comma = entry.find(',');
    const size_t second_comma = entry.find(',', first_comma + 1);
    if (second_comma == std::string::npos) continue;
    if (entry.starts_with("_empty_nn_module_stack")) continue;  // no module is known
    stack.push_back({.key = entry.substr(0, first_comma),
                     .path = entry.substr(first_comma + 1, second_comma - first_comma - 1),
                     .kind = entry.substr(entry.rfind('.') + 1)});
  }
  return stack;
}

/// The innermost module: `layer1.0.conv1 (Conv2d)`.
std::string module_of(const Json& node) {
  const auto stack = module_stack(node);
  if (stack.empty()) return "";
  const auto& [key, path, kind] = stack.back();
  return path.empty() ? kind : fmt::format("{} ({})", path, kind);
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

/// A check of the types of tensors, or of their values, which needs no call.
/// `_assert_scalar`, of sizes and of numbers that were computed from them, is called.
bool is_assertion(std::string_view target) {
  constexpr std::string_view kAten = "torch.ops.aten.";
  if (!target.starts_with(kAten)) return false;
  target.remove_prefix(kAten.size());
  return (target.starts_with("_assert") && !target.starts_with("_assert_scalar")) ||
         target.starts_with("sym_constrain_range");
}

/// The kind of an operation that runs graphs of its own.
std::optional<ExportedBlock::Kind> block_kind(std::string_view target) {
  if (target == "torch.ops.higher_order.wrap_with_set_grad_enabled") {
    return ExportedBlock::Kind::kSetGrad;
  }
  if (target == "torch.ops.higher_order.wrap_with_autocast") {
    return ExportedBlock::Kind::kAutocast;
  }
  if (target == "torch.ops.higher_order.cond") return ExportedBlock::Kind::kBranches;
  return std::nullopt;
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
  if (number < 0 || number >= static_cast<int64_t>(formats.size())) {
    throw Error(fmt::format("the memory format {} is not known", number));
  }
  return static_cast<int64_t>(formats.at(static_cast<size_t>(number)));
}

using Operand = ExportedOperand;

class Reader {
 public:
  Reader(const Json& graph, const ExportedValues& values, int depth) : depth_(depth) {
    for (const auto& name : values.inputs) result_->inputs.push_back(slot(name));
    for (const auto& name : values.state) state_.insert(slot(name));
    for (const auto& node : graph.at("nodes")) {
      const auto target = node.at("target").get<std::string>();
      if (is_assertion(target)) continue;
      try {
        result_->operations.push_back(read_operation(node));
        note_calls(node);
      } catch (const OperationError&) {
        throw;
      } catch (const Error& error) {
        throw OperationError(
            fmt::format("{}{}: {}", target, in_module(module_of(node)), error.what()));
      }
    }
    for (const auto& name : values.outputs) {
      result_->outputs.push_back(name.empty() ? ExportedOperation::kNowhere : known_slot(name));
    }
    result_->slot_count = slots_.size();
    result_->free_after_use();
    finish_calls();
  }

  std::shared_ptr<ExportedOperations> result() { return result_; }

 private:
  size_t slot(const std::string& name) {
    return slots_.try_emplace(name, slots_.size()).first->second;
  }

  size_t known_slot(const std::string& name) const {
    const auto found = slots_.find(name);
    if (found == slots_.end()) throw Error(fmt::format("the value \"{}\" is not there", name));
    return found->second;
  }

  Operand read_operand(const Json& argument) const {
    const auto constant = [](IValue value) {
      return Operand{.kind = Operand::Kind::kConstant, .constant = std::move(value)};
    };
    const auto list = [&](Operand::Kind kind, const Json& values, auto read) {
      Operand operand{.kind = kind};
      for (const auto& value : values) operand.parts.push_back(read(value));
      return operand;
    };
    const auto at_slot = [&](const Json& value) {
      return Operand{.kind = Operand::Kind::kSlot, .slot = known_slot(name_of(value))};
    };
    const auto sized = [&](const Json& value) {
      if (value.contains("as_name")) return at_slot(value);
      const Json& number = value.begin().value();
      return constant(number.is_boolean()          ? IValue(number.get<bool>())
                      : number.is_number_integer() ? IValue(whole_number(number))
                                                   : IValue(number_of(number)));
    };
    const auto [kind, value] = kind_and_value(argument);
    if (kind == "as_none") return constant({});
    if (kind == "as_tensor") return at_slot(*value);
    if (kind == "as_bool") return constant(value->get<bool>());
    if (kind == "as_int") return constant(whole_number(*value));
    if (kind == "as_float") return constant(number_of(*value));
    if (kind == "as_string") return constant(value->get<std::string>());
    if (kind == "as_ints") {
      std::vector<int64_t> numbers;
      for (const auto& each : *value) numbers.push_back(whole_number(each));
      return constant(numbers);
    }
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
      return constant(static_cast<int64_t>(exported_type(whole_number(*value))));
    }
    if (kind == "as_memory_format") return constant(memory_format_of(whole_number(*value)));
    if (kind == "as_layout") return constant(static_cast<int64_t>(c10::Layout::Strided));
    if (kind == "as_device") return {.kind = Operand::Kind::kDevice};
    throw Error(fmt::format("an argument of the kind {} is not supported", kind));
  }

  static std::string name_of(const Json& value) {
    return value.is_object() ? value.value("name", value.value("as_name", "")) : "";
  }

  void read_results(const Json& node, ExportedOperation& operation) {
    for (const auto& output : node.at("outputs")) {
      const auto [kind, value] = kind_and_value(output);
      if (kind == "as_tensors") {
        operation.returns_list = true;
        for (const auto& part : *value) operation.results.push_back(slot(part.at("name")));
        continue;
      }
      const std::string name = name_of(*value);
      operation.results.push_back(name.empty() ? ExportedOperation::kNowhere : slot(name));
    }
    if (operation.returns_list && node.at("outputs").size() != 1) {
      throw Error("several results, one of which is a list, are not supported");
    }
  }

  void read_arguments(const Json& inputs, ExportedOperation& operation) const {
    std::map<std::string, const Json*> given;
    for (const auto& input : inputs) given[input.at("name")] = &input.at("arg");
    for (const auto& argument : operation.call->schema().arguments()) {
      const auto found = given.find(argument.name());
      if (found == given.end()) {
        if (!argument.default_value()) {
          throw Error(fmt::format("its argument {} is missing", argument.name()));
        }
        operation.operands.push_back({.constant = *argument.default_value()});
        continue;
      }
      Operand operand = read_operand(*found->second);
      if (operand.kind == Operand::Kind::kConstant) {
        operand.constant = fitted(std::move(operand.constant), argument);
      }
      operation.operands.push_back(std::move(operand));
      given.erase(found);
    }
    if (!given.empty()) {
      throw Error(fmt::format("it has no argument {} here", given.begin()->first));
    }
  }

  /// A graph within an operation, whose values have names of their own.
  std::shared_ptr<const ExportedOperations> read_inner(const Json& graph) const {
    constexpr int kDeepest = 64;
    if (depth_ == kDeepest)
      throw Error(fmt::format("graphs lie more than {} deep in it", kDeepest));
    const auto names_of = [](const Json& values) {
      std::vector<std::string> names;
      for (const auto& each : values) names.push_back(name_of(*kind_and_value(each).second));
      return names;
    };
    const ExportedValues values{.inputs = names_of(graph.at("inputs")),
                                .outputs = names_of(graph.at("outputs"))};
    return Reader(graph, values, depth_ + 1).result();
  }

  void read_block(const Json& inputs, ExportedOperation& operation) const {
    for (const auto& input : inputs) {
      const auto [kind, value] = kind_and_value(input.at("arg"));
      if (kind == "as_graph") {
        operation.block->graphs.push_back(read_inner(value->at("graph")));
      } else {
        operation.operands.push_back(read_operand(input.at("arg")));
      }
    }
    const bool branches = operation.block->kind == ExportedBlock::Kind::kBranches;
    if (operation.block->graphs.size() != (branches ? 2U : 1U)) {
      throw Error("it has another number of graphs");
    }
  }

  ExportedOperation read_operation(const Json& node) {
    const auto target = node.at("target").get<std::string>();
    ExportedOperation operation{.name = target, .module = module_of(node)};
    const Json& inputs = node.at("inputs");
    if (const auto block = block_kind(target)) {
      operation.block = ExportedBlock{.kind = *block};
      read_block(inputs, operation);
    } else if (const auto name = operator_name(target)) {
      operation.name = name->overload_name.empty()
                           ? name->name
                           : fmt::format("{}.{}", name->name, name->overload_name);
      operation.call = c10::Dispatcher::singleton().findSchema(*name);
      if (!operation.call) throw Error("there is no such operation here");
      if (const std::string why = why_refused(*operation.call); !why.empty()) {
        throw Error(fmt::format("it {}, which a network must not", why));
      }
      operation.check = find_argument_check(*operation.call);
      read_arguments(inputs, operation);
    } else {
      operation.arithmetic = find_symbolic_operator(target, inputs.size());
      if (operation.arithmetic == nullptr) throw Error("there is no such operation here");
      for (const auto& input : inputs) {
        operation.operands.push_back(read_operand(input.at("arg")));
      }
    }
    read_results(node, operation);
    return operation;
  }

  /// The operation that was read last belongs to each module of its stack: it lengthens a module's
  /// call, or begins one.
  void note_calls(const Json& node) {
    const size_t last = result_->operations.size() - 1;
    std::map<std::string, size_t> now;
    for (const auto& [key, path, kind] : module_stack(node)) {
      if (path.empty()) continue;  // the network itself
      const auto running = calls_.find(key);
      size_t call = result_->module_calls.size();
      if (running == calls_.end()) {
        result_->module_calls.push_back({.path = path, .begin = last, .end = last});
      } else {
        call = running->second;
      }
      result_->module_calls[call].end = last + 1;
      now[key] = call;
    }
    calls_ = std::move(now);
  }

  /// What a call reads from before and leaves for after it.
  void finish_calls() {
    for (auto& call : result_->module_calls) {
      std::set<size_t> written, read, freed;
      for (size_t i = call.begin; i < call.end; ++i) {
        const ExportedOperation& operation = result_->operations[i];
        const auto note = [&](const Operand& operand) {
          if (operand.kind != Operand::Kind::kSlot) return;
          if (!written.contains(operand.slot)) read.insert(operand.slot);
        };
        for (const auto& operand : operation.operands) {
          note(operand);
          for (const auto& part : operand.parts) note(part);
        }
        for (const size_t slot : operation.results) {
          if (slot != ExportedOperation::kNowhere) written.insert(slot);
        }
        freed.insert(operation.freed.begin(), operation.freed.end());
      }
      for (const size_t slot : read) {
        (state_.contains(slot) ? call.state : call.inputs).push_back(slot);
      }
      std::ranges::set_difference(written, freed, std::back_inserter(call.results));
    }
  }

  int depth_;  ///< Of this graph in others.
  std::shared_ptr<ExportedOperations> result_ = std::make_shared<ExportedOperations>();
  std::map<std::string, size_t> slots_;
  std::set<size_t> state_;
  std::map<std::string, size_t> calls_;  ///< Modules that are being called, by their keys.
};

}  // namespace

std::shared_ptr<ExportedOperations> read_operations(const Json& graph,
                                                    const ExportedValues& values) {
  return Reader(graph, values, 0).result();
}

}  // namespace stepop
