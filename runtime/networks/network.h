#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <memory>
#include <string>
#include <vector>

#include "runtime/config/registry.h"
#include "runtime/formats/state.h"

namespace stepop {

/// A network from one tensor to one tensor, such as an image [B, C, H, W] to logits [B, classes].
/// A network with other inputs derives from torch::nn::Module itself.
class Network : public torch::nn::Module {
 public:
  virtual at::Tensor forward(const at::Tensor& input) = 0;

  /// What a user should know about it before a run begins; empty when there is nothing.
  virtual std::string warning() const { return {}; }
};

/// A network with several inputs, or several outputs, in an order of its own.
class MultiNetwork : public torch::nn::Module {
 public:
  virtual std::vector<at::Tensor> forward_all(const std::vector<at::Tensor>& inputs) = 0;

  /// The names of its inputs in their order, for a config that gives some of them by name; those
  /// that it leaves out are undefined tensors. Empty: they have no names.
  virtual std::vector<std::string> input_names() const { return {}; }
};

using ModelRegistry = Registry<std::shared_ptr<torch::nn::Module>(const Config&)>;
ModelRegistry& models();

/// The parameters and buffers of a network by name. They share memory with it.
State tensors_of(const torch::nn::Module& module);

/// Copies `state` into the tensors `own` of what is tracked as `name`. Throws Error, and changes
/// nothing, when a tensor is missing, left over, or of another shape or type.
void load_tensors(const std::string& name, const State& own, const State& state);

/// What helps when a layer was not registered, for messages.
inline constexpr const char* kRegisterModule =
    "layer_ = register_module(\"layer\", torch::nn::Linear(2, 1))";

}  // namespace stepop

/// Registers a network that has a constructor from `const Config&`, its own part of the config.
#define STEPOP_REGISTER_MODEL(Class, ...) \
  STEPOP_REGISTER(                        \
      ::stepop::models(), #Class,         \
      [](const ::stepop::Config& params) { return std::make_shared<Class>(params); }, __VA_ARGS__)
