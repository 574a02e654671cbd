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

/// What a network computes, written down operation by operation while it ran once, as
/// torch.jit.trace of Python does.
struct TracedNetwork {
  /// Its parameters and buffers are the network's own tensors, under their names; its `forward`
  /// takes those inputs that were defined, and returns a tensor, or a tuple of several.
  std::shared_ptr<torch::jit::Module> script = {};
  std::shared_ptr<torch::jit::Graph> graph = {};  ///< Of `forward`, with the shapes of the example.
  std::vector<std::string> inputs = {};           ///< Names.
  size_t outputs = 0;

  // What no graph holds. Names of operations, sorted, each once.
  std::vector<std::string> random = {};  ///< They draw random numbers.
  std::vector<std::string> read = {};  ///< Values of tensors that the code read, to decide on them.
  std::vector<std::string> devices = {};   ///< On which `forward` makes tensors: `cpu`.
  std::vector<std::string> warnings = {};  ///< LibTorch's own.
};

/// The inputs of an example, of which one dimension is larger or smaller.
struct OtherSize {
  NetworkInputs inputs;
  int64_t dimension = 0;  ///< 0: their rows.
};

/// Runs the network once, in the mode in which it is and without gradients. Nothing but what
/// `forward` itself changes is changed. `class_name` is that of the TorchScript class.
///
/// It runs once more for each of `others`: sizes of tensors are numbers in C++, and what differs
/// between both graphs shows which of them follow that dimension.
///
/// Throws Error, which says what is in the way, for a network that cannot be traced.
TracedNetwork trace_network(torch::nn::Module& network, const std::string& class_name,
                            const NetworkInputs& inputs, const std::vector<OtherSize>& others = {});

}  // namespace stepop
