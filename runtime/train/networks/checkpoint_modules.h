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
#include "runtime/train/networks/autocast.h"
#include "runtime/train/networks/float32_modules.h"
#include "runtime/train/networks/module_patterns.h"
#include "runtime/train/networks/second_run.h"

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
  /// Throws Error for a pattern that matches no module.
  CheckpointModules(const Config& config, const std::vector<ModulePattern::Network>& networks);
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
  std::vector<std::string> patterns_;
  std::vector<const torch::nn::Module*> modules_;
};

namespace checkpointing {

template <class Module, class... Inputs>
auto call(Module& module, const Inputs&... inputs) {
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

}  // namespace checkpointing

/// Calls `module.forward(inputs...)`; the backward pass runs it a second time when
/// `checkpoint_modules` names the module, and it computes in float32 when `float32_modules` does. A
/// network calls its larger blocks this way: `h = checkpointed(*block, h, embedding)`. The inputs
/// are copied (tensors share their memory) and read again. Throws what the module throws. The
/// backward pass throws Error when the inputs or weights have changed since, or when the module
/// does not repeat its first run.
template <std::derived_from<torch::nn::Module> Module, class... Inputs>
auto checkpointed(Module& module, const Inputs&... inputs) {
  const auto device = float32_device(module);
  if (!device) return checkpointing::call(module, inputs...);
  const AutocastGuard guard(Precision::kFloat32, *device);
  return checkpointing::call(module, in_float32(inputs)...);
}

}  // namespace stepop
