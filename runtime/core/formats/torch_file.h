#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "runtime/core/formats/state.h"

namespace stepop {

/// The tensors in a file of `torch.save` (`.pt`, `.pth`, `.ckpt`, `.bin`), on the CPU, contiguous.
/// The names of nested dicts are joined by dots: `state_dict.conv1.weight`. Nothing in the file is
/// run; what is no tensor is passed over. The bytes of a ZIP archive are mapped, not read.
///
/// Throws Error with the path and the cause for a file that cannot be read or is damaged; for a
/// network that was saved as an object, whose class only Python has; or with its code; for tensors
/// of a kind that the format of safetensors does not have; for values, names or tensors that would
/// take far more memory or time than the file is long.
State load_torch_file(const std::string& path);

/// A checkpoint of a training.
struct TorchCheckpoint {
  State tensors;                   ///< As load_torch_file returns them.
  std::vector<std::string> names;  ///< Those of the tensors, in the order of the file.
  /// By the name of a dict that has `param_groups`, which is the state of an optimizer: how many
  /// parameters each of its groups has.
  std::map<std::string, std::vector<size_t>> parameter_groups;
};

/// The same with what is needed to understand the state of an optimizer.
TorchCheckpoint load_torch_checkpoint(const std::string& path);

}  // namespace stepop
