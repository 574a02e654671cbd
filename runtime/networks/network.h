#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <memory>
#include <string>

#include "runtime/config/registry.h"

namespace stepop {

/// A network from one tensor to one tensor, such as an image [B, C, H, W] to logits [B, classes].
/// A network with other inputs derives from torch::nn::Module itself.
class Network : public torch::nn::Module {
 public:
  virtual at::Tensor forward(const at::Tensor& input) = 0;

  /// What a user should know of it before a run begins; empty when there is nothing.
  virtual std::string warning() const { return {}; }
};

using ModelRegistry = Registry<std::shared_ptr<torch::nn::Module>(const Config&)>;
ModelRegistry& models();

}  // namespace stepop

/// Registers a network that has a constructor from `const Config&`, its own part of the config.
#define STEPOP_REGISTER_MODEL(Class, ...) \
  STEPOP_REGISTER(                        \
      ::stepop::models(), #Class,         \
      [](const ::stepop::Config& params) { return std::make_shared<Class>(params); }, __VA_ARGS__)
