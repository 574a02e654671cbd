#pragma once

#include <string>
#include <vector>

#include "runtime/train/networks/network_calls.h"

namespace torch::nn {
class Module;
}

namespace stepop {

/// A network as a TorchScript file, and what was found out about it.
struct ExportedNetwork {
  std::string file = {};                       ///< Its bytes.
  std::vector<std::string> inputs = {};        ///< Names.
  std::vector<std::string> input_shapes = {};  ///< `float32 [batch, 1, 8, 8]`, as inputs.
  std::vector<std::string> output_shapes = {};
  bool has_free_batch = false;  ///< Batches of any size go in.

  /// Where it was compared with the network: `other examples`, ....
  std::vector<std::string> compared = {};
  double most_difference = 0;  ///< Of all of them: the largest, by the largest output.
  /// What to know of it, and what of it is not to be trusted; a sentence each.
  std::vector<std::string> notes = {};
  std::vector<std::string> warnings = {};

  /// Examples with what the file makes of them: of as many rows as it was traced with, and of
  /// others when any go in. Without inputs that were left out.
  struct Example {
    std::vector<at::Tensor> inputs;
    std::vector<at::Tensor> outputs;
  };
  std::vector<Example> examples = {};
  bool is_random = false;
};

/// Differences of the outputs above this share of the largest one are errors.
inline constexpr double kMostDifference = 1e-5;

/// Traces the network in evaluation mode on examples of its calls and compares what the file
/// computes with what the network does: on other examples, other sizes of a batch and of images.
/// LibTorch's generators are seeded anew before each run. `class_name` is that in the file.
///
/// Throws Error when the file would give other outputs for other examples, and when the network
/// cannot be traced.
ExportedNetwork export_network(torch::nn::Module& network, const std::string& class_name,
                               const std::vector<NetworkInputs>& calls);

}  // namespace stepop
