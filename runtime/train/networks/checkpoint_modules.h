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

/// The modules that `checkpoint_modules: ["decoder.*"]` names: they keep their inputs and nothing
/// else for the backward pass, which runs them once more (torch.utils.checkpoint; Chen et al.,
/// 2016). Gradients are the same to the bit: random numbers are drawn again as they were, running
/// statistics move once.
///
/// A pattern is a regular expression for any part of the path of a module with its network,
/// `model.decoder.0`. Of modules inside of each other the outermost is run again.
class CheckpointModules {
 public:
  using Network = std::pair<std::string, std::shared_ptr<torch::nn::Module>>;

  /// Throws Error for a pattern that matches no module.
  CheckpointModules(const Config& config, const std::vector<Network>& networks);
  ~CheckpointModules();
  CheckpointModules(const CheckpointModules&) = delete;
  CheckpointModules& operator=(const CheckpointModules&) = delete;

  bool empty() const { return modules_.empty(); }

  /// The paths of those that were run again, or will be, so far.
  std::vector<std::string> ran() const;

  /// What to warn about after training steps: patterns of which no module ran by `checkpointed`.
  /// Empty when all did.
  std::string warning() const;

 private:
  void forget() const;

  std::vector<std::string> patterns_;
  std::vector<const torch::nn::Module*> modules_;
};

namespace checkpointing {

/// Whether a call of this module is to be run again: it is named, gradients are wanted, and it is
/// not inside of another such call.
bool is_due(const torch::nn::Module& module);

/// Whether any network has called a module by `checkpointed` in this process.
bool has_calls();

/// While it lives, what operations save for the backward pass is counted and not kept; the backward
/// pass calls `forward` for it.
class Region {
 public:
  /// `inputs` may not change before the backward pass: an Error there says so.
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

/// `module.forward(inputs...)`, run once more in the backward pass when `checkpoint_modules` names
/// the module. A network calls its larger blocks so: `h = checkpointed(*block, h, embedding)`. Its
/// inputs are copied, as tensors are, and read again. Throws what the module throws; the backward
/// pass throws Error when the inputs or weights have changed since, or when the module does not
/// repeat what it did.
template <std::derived_from<torch::nn::Module> Module, class... Inputs>
auto checkpointed(Module& module, const Inputs&... inputs) {
  if (!checkpointing::is_due(module)) return module.forward(inputs...);
  // Whoever holds the graph holds the module.
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
