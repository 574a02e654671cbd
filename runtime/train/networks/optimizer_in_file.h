#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "runtime/core/formats/state.h"
#include "runtime/train/networks/name_rules.h"

namespace torch::nn {
class Module;
}

namespace stepop {

class Update;

/// The state of an optimizer of PyTorch, for an update.
struct OptimizerInFile {
  State state;          ///< For Update::load_state.
  size_t count = 0;     ///< The parameters whose state is in the file.
  int64_t updates = 0;  ///< The updates that were made there.
};

/// Reads the state of the optimizer that `torch.save({"state_dict": net.state_dict(), "optimizer":
/// optimizer.state_dict()}, path)` wrote beside the weights of a network, whatever these keys are.
/// PyTorch numbers the parameters in the order of the network there, which is that of its names in
/// the file; `rules` make them names of `network`. A parameter without a state, which never had a
/// gradient there, begins anew here. Rates, betas and other numbers are not read.
///
/// Throws Error, which begins with the path, when there is no such state or more than one, when the
/// optimizer has groups of parameters, when its parameters are not those of the network, when it
/// keeps other tensors than the optimizer of `update`, or tensors of other shapes.
OptimizerInFile read_optimizer(const std::string& path, const NameRules& rules,
                               const torch::nn::Module& network, const Update& update);

}  // namespace stepop
