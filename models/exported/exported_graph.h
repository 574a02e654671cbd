#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "models/exported/exported_file.h"

namespace stepop {

/// What a graph of torch.export has as an input, or returns.
struct ExportedPort {
  enum class Kind { kParameter, kBuffer, kConstant, kInput, kOutput, kMutation };
  Kind kind;
  std::string name;  ///< The tensor's name in the module, or the input's in the code.
  /// Of an input: its sizes, -1 where they are free.
  std::vector<int64_t> sizes = {};
};

/// The operations of an exported program, which are called one after another through LibTorch's
/// dispatcher: with autograd, autocast, and on any device.
class ExportedGraph {
 public:
  /// Throws Error, with the module that calls it, for an operation that this program does not have.
  explicit ExportedGraph(const nlohmann::json& model);
  ~ExportedGraph();

  /// In the order of `run`'s inputs and results.
  const std::vector<ExportedPort>& inputs() const { return inputs_; }
  const std::vector<ExportedPort>& outputs() const { return outputs_; }
  /// Operations that drop or normalize otherwise in training, with the mode that the graph has:
  /// `dropout`, `batch_norm`. Sorted, each once.
  const std::vector<std::string>& training() const { return training_; }
  const std::vector<std::string>& evaluation() const { return evaluation_; }

  /// The results of the operations. Throws Error that names the operation that failed, and its
  /// module.
  std::vector<at::Tensor> run(const std::vector<at::Tensor>& inputs) const;

 private:
  struct Operand;
  struct Step;

  size_t slot(const std::string& name);
  size_t known_slot(const nlohmann::json& argument) const;
  Operand read_operand(const nlohmann::json& argument) const;
  Step read_step(const nlohmann::json& node);
  void read_outputs_of(const nlohmann::json& node, Step& step);
  void read_inputs(const nlohmann::json& signature, const nlohmann::json& values);
  void read_outputs(const nlohmann::json& signature);
  void note_mode(const Step& step);
  void free_after_use();

  std::map<std::string, size_t> slots_;
  std::vector<ExportedPort> inputs_, outputs_;
  std::vector<size_t> input_slots_, output_slots_;
  std::vector<Step> steps_;
  std::vector<std::string> training_, evaluation_;
};

}  // namespace stepop
