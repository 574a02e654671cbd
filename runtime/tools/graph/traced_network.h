#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/train/networks/network_calls.h"

namespace torch::jit {
struct Graph;
struct Module;
}  // namespace torch::jit

namespace stepop {

/// A network's operations, recorded one by one while the network ran once, like Python's
/// torch.jit.trace.
struct TracedNetwork {
  /// The parameters and buffers are the network's own tensors, under their names. `forward` takes
  /// the inputs that were defined, and returns a tensor, or a tuple of several.
  std::shared_ptr<torch::jit::Module> script = {};
  std::shared_ptr<torch::jit::Graph> graph = {};  ///< `forward`'s graph, with the example's shapes.
  std::vector<std::string> inputs = {};           ///< The inputs' names.
  size_t outputs = 0;

  // Facts that no graph contains: sorted names of operations, without duplicates.
  std::vector<std::string> random = {};  ///< Operations that draw random numbers.
  std::vector<std::string> read = {};    ///< Operations that read values, on which code may branch.
  std::vector<std::string> devices = {};   ///< Devices on which `forward` makes tensors: `cpu`.
  std::vector<std::string> warnings = {};  ///< LibTorch's warnings.
};

/// The inputs of an example with one dimension larger or smaller.
struct OtherSize {
  NetworkInputs inputs;
  int64_t dimension = 0;  ///< 0: the rows of the inputs.
};

/// Runs the network once, in its current mode and without gradients. Only changes that `forward`
/// itself makes remain. `class_name` is the name of the TorchScript class.
///
/// Runs once more for each of `others`: sizes of tensors are numbers in C++, and the differences
/// between the two graphs show which numbers follow that dimension.
///
/// Throws Error with the reason for a network that cannot be traced.
TracedNetwork trace_network(torch::nn::Module& network, const std::string& class_name,
                            const NetworkInputs& inputs, const std::vector<OtherSize>& others = {});

}  // namespace stepop
