#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>
#include <c10/core/Device.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "models/exported/safe_operations.h"
#include "models/exported/symbolic_operators.h"
#include "runtime/core/base/error.h"

namespace torch::nn {
class Module;
}

namespace stepop {

class ExportedOperations;

/// Names the operation that failed: of graphs within graphs, the innermost.
struct OperationError : Error {
  using Error::Error;
};

/// An argument of an operation. A slot is a place for a value during a run.
struct ExportedOperand {
  enum class Kind { kConstant, kSlot, kDevice, kTensors, kOptionalTensors, kInts };
  Kind kind = Kind::kConstant;
  c10::IValue constant = {};
  size_t slot = 0;
  std::vector<ExportedOperand> parts = {};  ///< Of a list: constants and slots.
};

/// Code under `torch.no_grad()` or `torch.autocast`, and the branches of `torch.cond`: graphs of
/// their own.
struct ExportedBlock {
  enum class Kind { kSetGrad, kAutocast, kBranches };
  Kind kind;
  std::vector<std::shared_ptr<const ExportedOperations>> graphs = {};
};

struct ExportedOperation {
  static constexpr size_t kNowhere = static_cast<size_t>(-1);

  std::string name;         ///< `aten::conv2d`
  std::string module = {};  ///< The module that calls it: `layer1.0.conv1 (Conv2d)`.
  /// One of these three is there.
  std::optional<c10::OperatorHandle> call = {};
  SymbolicOperator arithmetic = nullptr;
  std::optional<ExportedBlock> block = {};

  ArgumentCheck check = nullptr;  ///< Before the call.

  std::vector<ExportedOperand> operands = {};  ///< In the order of the schema.
  std::vector<size_t> results = {};            ///< Slots; kNowhere for a result that nobody reads.
  bool returns_list = false;                   ///< `results` are the parts of one list.
  std::vector<size_t> freed = {};              ///< The slots that no later operation reads.
};

/// The operations that a call of a module has become, [begin, end).
struct ExportedModuleCall {
  std::string path;  ///< `layer1.0`
  size_t begin, end;
  const torch::nn::Module* module = nullptr;
  std::vector<size_t> inputs = {};   ///< Slots that it reads, of what was computed before it.
  std::vector<size_t> state = {};    ///< Slots that it reads, of the graph's own tensors.
  std::vector<size_t> results = {};  ///< Slots that it writes and something after it reads.
};

/// Operations that are called one after another through LibTorch's dispatcher. Held by a
/// std::shared_ptr.
class ExportedOperations : public std::enable_shared_from_this<ExportedOperations> {
 public:
  size_t slot_count = 0;
  std::vector<size_t> inputs, outputs;  ///< Slots, in the order of `run`.
  std::vector<ExportedOperation> operations;
  /// Calls that `checkpoint_modules` may name; outer ones before inner ones.
  std::vector<ExportedModuleCall> module_calls;

  /// Fills in which slots an operation frees, so that memory is as in Python. Once, at the end.
  void free_after_use();

  /// Tensors that an operation makes on a device are on this one. Throws Error that names the
  /// operation that failed, and its module.
  std::vector<c10::IValue> run(const std::vector<c10::IValue>& values, c10::Device device) const;

 private:
  struct Run;
};

/// The value as the operation's schema wants it: a number for a tensor is wrapped, a whole number
/// for a float is converted, one number for a list is repeated.
c10::IValue fitted(c10::IValue value, const c10::Argument& argument);

/// ` of layer1.0 (Block)`, or nothing.
std::string in_module(const std::string& module);

}  // namespace stepop
