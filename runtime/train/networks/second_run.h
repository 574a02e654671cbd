// Calls of modules that keep their inputs alone, and run again in the backward pass.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <concepts>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

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

/// Whether a call of this module is to be run again: the config names the module, gradients are
/// wanted, and no outer call is run again.
bool is_due(const torch::nn::Module& module);

/// Whether any network in this process has called a module by `checkpointed`.
bool has_calls();

/// During its lifetime, tensors that operations save for the backward pass are counted, not kept;
/// the backward pass calls `forward` to get them.
class Region {
 public:
  /// If `inputs` change before the backward pass, it throws an Error that says so.
  Region(torch::nn::Module& module, std::function<void()> forward, std::vector<at::Tensor> inputs);
  ~Region();
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;

  class Call;

 private:
  std::shared_ptr<Call> call_;
};

template <class Input>
void add_tensor(std::vector<at::Tensor>& tensors, const Input& input) {
  if constexpr (std::convertible_to<const Input&, at::Tensor>) tensors.emplace_back(input);
}

}  // namespace stepop::checkpointing
