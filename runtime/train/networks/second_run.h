#pragma once

#include <torch/nn/module.h>

#include <set>
#include <string>
#include <unordered_map>

namespace stepop::checkpointing {

inline constexpr const char* kModulesKey = "checkpoint_modules";

/// A module that the config names.
struct Named {
  std::string path;                   ///< `model.decoder.0`
  std::set<std::string> of_patterns;  ///< Patterns that match the module.
  bool ran = false;                   ///< `checkpointed` ran it with gradients.
};
/// A map from modules to their names; a module itself has no room for a mark.
std::unordered_map<const torch::nn::Module*, Named>& named_modules();

/// From now on, backward passes use an engine that runs such modules a second time.
void use_engine_with_hooks();

}  // namespace stepop::checkpointing
