#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <concepts>
#include <optional>
#include <string>
#include <vector>

#include "runtime/train/networks/module_patterns.h"

namespace stepop {

/// The modules that `float32_modules: ["head"]` names: they compute in float32 whatever
/// `precision` says, on inputs that are converted to float32. Patterns are those of
/// `checkpoint_modules`, and so is the way that a network calls its blocks.
class Float32Modules {
 public:
  /// Throws Error for a pattern that matches no module.
  Float32Modules(const Config& config, const c10::Device& device,
                 const std::vector<ModulePattern::Network>& networks);
  ~Float32Modules();
  Float32Modules(const Float32Modules&) = delete;
  Float32Modules& operator=(const Float32Modules&) = delete;

  /// A warning, after training steps, about patterns none of whose modules ran by `checkpointed`.
  /// Empty when a module ran for each pattern.
  std::string warning() const;

 private:
  std::vector<ModulePattern> patterns_;
};

/// The device on which this module is to compute in float32; nothing when the config does not name
/// the module, and where everything computes in float32 already.
std::optional<c10::Device> float32_device(const torch::nn::Module& module);

/// A tensor of a shorter floating-point type as float32, and everything else as it is.
at::Tensor in_float32(const at::Tensor& tensor);
template <class Input>
requires(!std::same_as<Input, at::Tensor>) const Input& in_float32(const Input& input) {
  return input;
}

}  // namespace stepop
