#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "models/exported/exported_operations.h"

namespace stepop {

/// What a graph of torch.export has as an input, or returns.
struct ExportedPort {
  enum class Kind { kParameter, kBuffer, kConstant, kInput, kOutput, kMutation };
  Kind kind;
  /// The tensor's name in the module, the input's in the code, or the result's in the graph.
  std::string name = {};
  /// The sizes of an input or a result, -1 where they are free.
  std::vector<int64_t> sizes = {};
};

/// The operations of an exported program, with autograd, autocast, and on any device.
class ExportedGraph {
 public:
  /// Throws Error, with the module that calls it, for an operation that this program does not have.
  explicit ExportedGraph(const nlohmann::json& model);

  /// In the order of `run`'s inputs and results.
  const std::vector<ExportedPort>& inputs() const { return inputs_; }
  const std::vector<ExportedPort>& outputs() const { return outputs_; }
  /// Operations that drop or normalize otherwise in training, with the mode that the graph has:
  /// `dropout`, `batch_norm`. Sorted, each once.
  const std::vector<std::string>& training() const { return training_; }
  const std::vector<std::string>& evaluation() const { return evaluation_; }

  /// Constants into which the operations write. They are no state of the network.
  const std::vector<std::string>& written_constants() const { return written_constants_; }

  /// `module_at` finds the modules whose calls `checkpoint_modules` may name, by their paths; null
  /// for one without tensors.
  void find_modules(const std::function<const torch::nn::Module*(const std::string&)>& module_at);

  /// The same graph with another result: what the module at `path` gives when it is called last.
  /// All operations still run. Throws Error, with the paths that there are, for another module, and
  /// for one that gives several values.
  std::shared_ptr<ExportedGraph> ending_at(const std::string& path) const;

  /// The results of the operations. Throws Error that names
  /// the operation that failed, and its module.
  std::vector<at::Tensor> run(const std::vector<at::Tensor>& inputs) const;

 private:
  void note_modes(const ExportedOperations& operations);
  void note_written_constants();

  std::vector<ExportedPort> inputs_, outputs_;
  std::shared_ptr<ExportedOperations> operations_;
  std::vector<std::string> training_, evaluation_, written_constants_;
};

}  // namespace stepop
