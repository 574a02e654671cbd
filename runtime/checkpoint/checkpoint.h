#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/checkpoint/progress.h"
#include "runtime/checkpoint/state.h"

namespace stepop {

/// A run at one step: what is tracked, and where the run was.
struct Checkpoint {
  State tensors;
  Progress progress;
  std::string config;  ///< The resolved config as YAML.
};

/// Writes `model-<step>.safetensors` into `folder`, whole or not at all, and returns its path.
std::string save_checkpoint(const std::string& folder, const Checkpoint& checkpoint);

/// Reads a checkpoint. Throws Error with the path when it cannot be read, or is another program's.
Checkpoint load_checkpoint(const std::string& path);

/// The file name of a step's checkpoint.
std::string checkpoint_name(int64_t step);

/// The steps that have a checkpoint in `folder`, ascending; none when there is no such folder.
std::vector<int64_t> checkpoint_steps(const std::string& folder);

}  // namespace stepop
