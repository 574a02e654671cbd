#include "models/exported/exported_operations.h"

#include <ATen/ScalarOps.h>
#include <ATen/autocast_mode.h>
#include <ATen/core/grad_mode.h>
#include <ATen/core/stack.h>
#include <fmt/format.h>
#include <torch/nn/module.h>

#include <optional>

#include "runtime/core/base/error.h"
#include "runtime/train/networks/autocast.h"
#include "runtime/train/networks/checkpoint_modules.h"
#include "runtime/train/networks/float32_modules.h"

namespace stepop {

using c10::IValue;

namespace {

c10::TypePtr inner_type(const c10::Argument& argument) {
  c10::TypePtr type = argument.real_type();
  if (const auto optional = type->cast<c10::OptionalType>()) type = optional->getElementType();
  return type;
}

/// The state of autocast during its lifetime, as `torch.autocast(...)` sets it.
class AutocastBlock {
 public:
  AutocastBlock(c10::DeviceType device, at::ScalarType type, bool is_on, bool is_cached)
      : device_(device),
        was_on_(at::autocast::is_autocast_enabled(device)),
        was_cached_(at::autocast::is_autocast_cache_enabled()),
        type_before_(at::autocast::get_autocast_dtype(device)) {
    set(type, is_on, is_cached);
  }
  ~AutocastBlock() { set(type_before_, was_on_, was_cached_); }
  AutocastBlock(const AutocastBlock&) = delete;
  AutocastBlock& operator=(const AutocastBlock&) = delete;

 private:
  void set(at::ScalarType type, bool is_on, bool is_cached) const {
    at::autocast::set_autocast_enabled(device_, is_on);
    at::autocast::set_autocast_dtype(device_, type);
    at::autocast::set_autocast_cache_enabled(is_cached);
  }

  c10::DeviceType device_;
  bool was_on_, was_cached_;
  at::ScalarType type_before_;
};

}  // namespace

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

std::string in_module(const std::string& module) {
  return module.empty() ? "" : fmt::format(" of {}", module);
}

void ExportedOperations::free_after_use() {
  std::vector<bool> is_needed(slot_count, false);
  for (const size_t slot : outputs) is_needed[slot] = true;
  for (auto operation = operations.rbegin(); operation != operations.rend(); ++operation) {
    const auto note = [&](size_t slot) {
      if (slot == ExportedOperation::kNowhere || is_needed[slot]) return;
      is_needed[slot] = true;
      operation->freed.push_back(slot);
    };
    for (const size_t result : operation->results) note(result);
    for (const auto& operand : operation->operands) {
      if (operand.kind == ExportedOperand::Kind::kSlot) note(operand.slot);
      for (const auto& part : operand.parts) {
        if (part.kind == ExportedOperand::Kind::kSlot) note(part.slot);
      }
    }
  }
}

/// The values of one run.
struct ExportedOperations::Run {
  const ExportedOperations& all;
  c10::Device device;
  std::vector<IValue> values;

  IValue value_of(const ExportedOperand& operand) const {
    using Kind = ExportedOperand::Kind;
    const auto at_part = [&](const ExportedOperand& part) -> const IValue& {
      return part.kind == Kind::kSlot ? values[part.slot] : part.constant;
    };
    switch (operand.kind) {
      case Kind::kConstant:
        return operand.constant;
      case Kind::kSlot:
        return values[operand.slot];
      case Kind::kDevice:
        return device;
      case Kind::kTensors: {
        c10::List<at::Tensor> tensors;
        for (const auto& part : operand.parts) tensors.push_back(at_part(part).toTensor());
        return tensors;
      }
      case Kind::kOptionalTensors: {
        c10::List<std::optional<at::Tensor>> tensors;
        for (const auto& part : operand.parts) {
          tensors.push_back(at_part(part).toOptional<at::Tensor>());
        }
        return tensors;
      }
      case Kind::kInts: {
        std::vector<int64_t> numbers;
        for (const auto& part : operand.parts) numbers.push_back(at_part(part).toInt());
        return numbers;
      }
    }
    throw Error("an operand of an unknown kind");
  }

  /// The results of code in a block, in the place of its arguments.
  void run_block(const ExportedBlock& block, torch::jit::Stack& stack) const {
    const auto run = [&](size_t graph, size_t first_input) {
      stack = block.graphs.at(graph)->run(
          {stack.begin() + static_cast<std::ptrdiff_t>(first_input), stack.end()}, device);
    };
    switch (block.kind) {
      case ExportedBlock::Kind::kSetGrad: {
        const at::AutoGradMode mode(stack.at(0).toBool());
        return run(0, 1);
      }
      case ExportedBlock::Kind::kAutocast: {
        const AutocastBlock autocast(device.type(), stack.at(1).toScalarType(),
                                     stack.at(2).toBool(), stack.at(3).toBool());
        return run(0, 4);
      }
      case ExportedBlock::Kind::kBranches: {
        const IValue condition = stack.at(0);
        const bool holds =
            condition.isTensor() ? condition.toTensor().item().toBool() : condition.toBool();
        const IValue operands = stack.at(1);
        stack.clear();
        if (operands.isTensorList()) {
          for (const auto& tensor : operands.toTensorVector()) stack.emplace_back(tensor);
        } else {
          for (const int64_t number : operands.toIntVector()) stack.emplace_back(number);
        }
        return run(holds ? 0 : 1, 0);
      }
    }
  }

  void run_one(const ExportedOperation& operation, torch::jit::Stack& stack) {
    stack.clear();
    for (size_t i = 0; i < operation.operands.size(); ++i) {
      const ExportedOperand& operand = operation.operands[i];
      stack.push_back(value_of(operand));
      if (operation.call && operand.kind == ExportedOperand::Kind::kSlot &&
          !stack.back().isTensor()) {
        stack.back() = fitted(std::move(stack.back()), operation.call->schema().arguments()[i]);
      }
    }
    if (operation.call) {
      if (operation.check != nullptr) operation.check(stack);
      operation.call->callBoxed(stack);
    } else if (operation.block) {
      run_block(*operation.block, stack);
    } else {
      stack = {operation.arithmetic(stack)};
    }
    if (operation.returns_list) {
      const auto parts = stack.at(0).toTensorVector();
      stack.assign(parts.begin(), parts.end());
    }
    if (stack.size() < operation.results.size()) throw Error("it returned too few results");
    for (size_t i = 0; i < operation.results.size(); ++i) {
      if (operation.results[i] != ExportedOperation::kNowhere) {
        values[operation.results[i]] = std::move(stack[i]);
      }
    }
    for (const size_t slot : operation.freed) values[slot] = {};
  }

  /// Runs a module's call in a run of its own, which the backward pass repeats when the config says
  /// so; in float32, when the config names the module's device for that.
  void run_module(const ExportedModuleCall& call, const std::optional<c10::Device>& in_float32_on) {
    Run inner{.all = all, .device = device, .values = std::vector<IValue>(values.size())};
    std::vector<at::Tensor> tensors;
    for (const size_t slot : call.state) inner.values[slot] = values[slot];
    for (const size_t slot : call.inputs) {
      inner.values[slot] = values[slot];
      if (!values[slot].isTensor()) continue;
      if (in_float32_on) inner.values[slot] = in_float32(values[slot].toTensor());
      tensors.push_back(inner.values[slot].toTensor());
    }
    std::optional<AutocastGuard> guard;
    if (in_float32_on) guard.emplace(Precision::kFloat32, *in_float32_on);
    // The backward pass may be later than the network.
    const auto forward = [kept = all.shared_from_this(), part = call.module->shared_from_this(),
                          &call, start = inner] {
      Run run = start;
      run.run_range(call.begin, call.end);
      return run.values;
    };
    {
      std::optional<checkpointing::Region> region;
      if (checkpointing::is_due(*call.module)) {
        region.emplace(
            const_cast<torch::nn::Module&>(*call.module), [forward] { forward(); },
            std::move(tensors));
      }
      inner.values = forward();
    }
    for (size_t i = call.begin; i < call.end; ++i) {
      for (const size_t slot : all.operations[i].freed) values[slot] = {};
    }
    for (const size_t slot : call.results) values[slot] = std::move(inner.values[slot]);
  }

  void run_range(size_t begin, size_t end) {
    torch::jit::Stack stack;
    auto call = all.module_calls.begin();
    for (size_t i = begin; i < end;) {
      while (call != all.module_calls.end() && call->begin < i) ++call;
      bool ran = false;
      for (; !ran && call != all.module_calls.end() && call->begin == i; ++call) {
        if (call->module == nullptr) continue;
        const auto in_float32_on = float32_device(*call->module);
        if (!in_float32_on && !checkpointing::is_due(*call->module)) continue;
        run_module(*call, in_float32_on);
        i = call->end;
        ran = true;
      }
      if (ran) continue;
      const ExportedOperation& operation = all.operations[i++];
      try {
        run_one(operation, stack);
      } catch (const OperationError&) {
        throw;
      } catch (const std::exception& error) {
        throw OperationError(fmt::format("{}{}: {}", operation.name, in_module(operation.module),
                                         error_text(error)));
      }
    }
  }
};

std::vector<IValue> ExportedOperations::run(const std::vector<IValue>& given,
                                            c10::Device device) const {
  if (given.size() != inputs.size()) throw Error("it got another number of inputs");
  Run run{.all = *this, .device = device, .values = std::vector<IValue>(slot_count)};
  for (size_t i = 0; i < given.size(); ++i) run.values[inputs[i]] = given[i];
  run.run_range(0, operations.size());
  std::vector<IValue> results;
  for (const size_t slot : outputs) {
    results.push_back(slot == ExportedOperation::kNowhere ? IValue() : run.values[slot]);
  }
  return results;
}

}  // namespace stepop
