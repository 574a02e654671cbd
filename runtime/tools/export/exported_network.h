#pragma once

#include <string>
#include <vector>

#include "runtime/train/networks/network_calls.h"

namespace torch::nn {
class Module;
}

namespace stepop {

/// A network as a TorchScript file, with the results of its checks.
struct ExportedNetwork {
  std::string class_names = {};                ///< In JSON, by key; empty for none. In the file.
  std::string file = {};                       ///< The file's bytes.
  std::vector<std::string> inputs = {};        ///< The inputs' names.
  std::vector<std::string> input_shapes = {};  ///< `float32 [batch, 1, 8, 8]`, one for each input.
  std::vector<std::string> output_shapes = {};
  bool has_free_batch = false;  ///< Batches may have any size.

  /// The comparisons with the network: `other examples`, ....
  std::vector<std::string> compared = {};
  double most_difference = 0;  ///< The largest of all comparisons, relative to the largest output.
  /// Facts about the file, and parts that cannot be trusted; one sentence each.
  std::vector<std::string> notes = {};
  std::vector<std::string> warnings = {};

  /// Examples with the file's outputs: as many rows as the trace, and other numbers if the file
  /// takes any number. Omitted inputs are left out.
  struct Example {
    std::vector<at::Tensor> inputs;
    std::vector<at::Tensor> outputs;
  };
  std::vector<Example> examples = {};
  bool is_random = false;
};

/// Larger differences of the outputs, as a share of the largest output, are errors.
inline constexpr double kMostDifference = 1e-5;

/// Traces the network in evaluation mode on examples of its calls, and compares the file's outputs
/// with the network's: on other examples, other batch sizes and image sizes. LibTorch's generators
/// are seeded again before each run. `class_name` is the class in the file.
///
/// Throws Error when the file would give other outputs than the network for other examples, and
/// when the network cannot be traced.
ExportedNetwork export_network(torch::nn::Module& network, const std::string& class_name,
                               const std::vector<NetworkInputs>& calls,
                               const std::string& class_names = "");

}  // namespace stepop
