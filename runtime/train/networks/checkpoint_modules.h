#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <concepts>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "runtime/core/config/config.h"

namespace stepop {

/// The modules that `checkpoint_modules: ["decoder.*"]` names. Such a module keeps only its inputs
/// for the backward pass, which runs the module a second time (torch.utils.checkpoint; Chen et al.,
/// 2016). Gradients are equal to the last bit: the second run draws the same random numbers, and
/// running statistics change only once.
///
/// A pattern is a regular expression for any part of a module's path, which begins with the
/// network: `model.decoder.0`. Among nested modules only the outermost module is run again.
class CheckpointModules {
 public:
  using Network = std::pair<std::string, std::shared_ptr<torch::nn::Module>>;

  /// Throws Error for a pattern that matches no module.
  CheckpointModules(const Config& config, const std::vector<Network>& networks);
  ~CheckpointModules();
  CheckpointModules(const CheckpointModules&) = delete;
  CheckpointModules& operator=(const CheckpointModules&) = delete;

  bool empty() const { return modules_.empty(); }

  /// The paths of the modules that so far were run again, or will be.
  std::vector<std::string> ran() const;

  /// A warning, after training steps, about patterns none of whose modules ran by `checkpointed`.
  /// Empty when a module ran for each pattern.
  std::string warning() const;

 private:
  void forget() const;

  std::vector<std::string> patterns_;
  std::vector<const torch::nn::Module*> modules_;
};

namespace checkpointing {

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

}  // namespace checkpointing

/// Calls `module.forward(inputs...)`; the backward pass runs it a second time when
/// `checkpoint_modules` names the module. A network calls its larger blocks this way: `h =
/// checkpointed(*block, h, embedding)`. The inputs are copied (tensors share their memory) and read
/// again. Throws what the module throws. The backward pass throws Error when the inputs or weights
/// have changed since, or when the module does not repeat its first run.
template <std::derived_from<torch::nn::Module> Module, class... Inputs>
auto checkpointed(Module& module, const Inputs&... inputs) {
  if (!checkpointing::is_due(module)) return module.forward(inputs...);
  // The graph keeps the module alive.
  const auto forward = [kept = module.weak_from_this().lock(), &module, inputs...] {
    return module.forward(inputs...);
  };
  std::vector<at::Tensor> tensors;
  (checkpointing::add_tensor(tensors, inputs), ...);
  const checkpointing::Region region(
      const_cast<std::remove_const_t<Module>&>(module), [forward] { forward(); },
      std::move(tensors));
  return forward();
}

}  // namespace stepop
