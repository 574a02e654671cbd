#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "models/exported/compiled_passes.h"
#include "models/exported/exported_file.h"
#include "models/exported/exported_graph.h"
#include "models/exported/exported_limits.h"
#include "runtime/core/base/ordered_map.h"
#include "runtime/core/value/value.h"

namespace stepop {

/// A file with its graphs. It is read before the class of its network is known.
struct ExportedContent {
  std::string path;
  ExportedFile file;
  std::shared_ptr<ExportedGraph> graph = nullptr;
  std::shared_ptr<ExportedGraph> evaluation = nullptr;  ///< Null without a program for it.

  bool is_from_one_to_one() const;
};

/// Throws Error, and the parser's exceptions for a damaged file. `compiled` is whether the file's
/// compiled passes are wanted.
ExportedContent read_exported_content(const std::string& path, bool compiled);

/// The graphs of a file and the tensors that they run on, which are those of a module.
class ExportedPrograms {
 public:
  /// Registers the tensors in the module. Throws Error for a file that lacks some.
  ExportedPrograms(const ExportedContent& content, torch::nn::Module& module);

  /// From now on calls run the compiled passes of the file where these have what is wanted. Throws
  /// Error for passes that cannot run here.
  void use_compiled(const ExportedContent& content);

  /// As of NetworkLayers, for a network with one result.
  void end_at(const std::string& path);

  /// The names of the inputs in their order.
  std::vector<std::string> input_names() const;

  /// As of NetworkPorts.
  std::string ports() const;

  /// The results, in their order. `network` is the module.
  std::vector<at::Tensor> run(const torch::nn::Module& network,
                              const std::vector<at::Tensor>& inputs, bool training);

  /// As of Network.
  std::string warning() const;

  /// As of NetworkAlternatives: with the compiled passes, or without them. A file that another user
  /// may have written is not proposed, as its passes are native code.
  OrderedMap<Value> alternatives() const;

 private:
  struct Loaded {
    std::shared_ptr<const ExportedGraph> graph;
    std::vector<at::Tensor> tensors;  ///< One for each input; undefined for an input of a call.
    std::vector<at::Tensor> mutated;  ///< One for each output: the buffer that takes its value.
    ExportedLimits limits;
  };

  Loaded load(const ExportedProgram& program, const std::shared_ptr<ExportedGraph>& graph,
              torch::nn::Module& module);
  at::Tensor tensor_of(const ExportedPort& port, const ExportedProgram& program,
                       torch::nn::Module& module);
  /// What a graph takes. Throws Error for other inputs than it was exported for.
  std::vector<at::Tensor> taken(Loaded& loaded, const std::vector<at::Tensor>& inputs) const;
  void check_sizes(const ExportedPort& port, const at::Tensor& input) const;
  std::vector<at::Tensor> finished(const Loaded& loaded, std::vector<at::Tensor> results) const;

  std::string path_;
  bool has_compiled_ = false;
  std::map<std::string, at::Tensor> known_;
  std::optional<Loaded> graph_, evaluation_;
  std::unique_ptr<CompiledPasses> compiled_;
};

}  // namespace stepop
