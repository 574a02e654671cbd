#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "runtime/core/components/registry.h"
#include "runtime/core/formats/state.h"

namespace stepop {

/// Lets others watch a network's calls, to get example inputs for a graph or an export.
class WatchedCalls {
 public:
  using Watch = std::function<void(const std::vector<at::Tensor>& inputs)>;

  /// `watch` gets the inputs of each call before the call runs; an empty function ends that.
  void watch_calls(Watch watch) { watch_ = std::move(watch); }

 protected:
  WatchedCalls() = default;
  ~WatchedCalls() = default;

  /// A registered network reports each `forward` and `forward_all` by itself. A network with its
  /// own function, such as `forward(pose, appearance)`, calls `call_begins` in that function.
  void call_begins(const std::vector<at::Tensor>& inputs) const {
    if (watch_) watch_(inputs);
  }
  bool is_watched() const { return static_cast<bool>(watch_); }

 private:
  Watch watch_;
};

/// A network from one tensor to one tensor, such as an image [B, C, H, W] to logits [B, classes].
/// A network with other inputs derives from MultiNetwork, or from torch::nn::Module itself.
class Network : public torch::nn::Module, public WatchedCalls {
 public:
  virtual at::Tensor forward(const at::Tensor& input) = 0;

  /// A warning for the user before a run begins; empty for none.
  virtual std::string warning() const { return {}; }
};

/// A network with several inputs, or several outputs, in a fixed order.
class MultiNetwork : public torch::nn::Module, public WatchedCalls {
 public:
  virtual std::vector<at::Tensor> forward_all(const std::vector<at::Tensor>& inputs) = 0;

  /// The names of the inputs in their order, for a config that gives some of them by name; inputs
  /// that it leaves out are undefined tensors. Empty: the inputs have no names.
  virtual std::vector<std::string> input_names() const { return {}; }

  /// As of Network.
  virtual std::string warning() const { return {}; }
};

using ModelRegistry = Registry<std::shared_ptr<torch::nn::Module>(const Config&)>;
ModelRegistry& models();

/// Keys that name a network's class in the place of `class`. An iterator that reads configs of
/// another program adds that program's key before main().
std::vector<std::string>& other_class_keys();

/// The parameters and buffers of a network by name. They share memory with it.
State tensors_of(const torch::nn::Module& module);

/// Copies `state` into `own`, the tensors that are tracked as `name`. Throws Error, and changes
/// nothing, when a tensor is missing, left over, or of another shape or type.
void load_tensors(const std::string& name, const State& own, const State& state);

/// The advice for a layer that was not registered, for messages.
inline constexpr const char* kRegisterModule =
    "layer_ = register_module(\"layer\", torch::nn::Linear(2, 1))";

namespace networks {

template <class Class>
class Watched : public Class {
 public:
  using Class::Class;
  at::Tensor forward(const at::Tensor& input) override {
    if (this->is_watched()) this->call_begins({input});
    return Class::forward(input);
  }
};

template <class Class>
class WatchedMulti : public Class {
 public:
  using Class::Class;
  std::vector<at::Tensor> forward_all(const std::vector<at::Tensor>& inputs) override {
    this->call_begins(inputs);
    return Class::forward_all(inputs);
  }
};

// A class that is `final`, or hides the function, is built unchanged, and its calls are not
// watched.
template <class Class>
concept HasForward = std::is_base_of_v<Network, Class> && !std::is_final_v<Class> &&
                     requires(Class & network, const at::Tensor& x) {
  network.Class::forward(x);
};
template <class Class>
concept HasForwardAll = std::is_base_of_v<MultiNetwork, Class> && !std::is_final_v<Class> &&
                        requires(Class & network, const std::vector<at::Tensor>& x) {
  network.Class::forward_all(x);
};

/// The type that is built for a registered class: the class, with calls that can be watched.
template <class Class>
using Built =
    std::conditional_t<HasForward<Class>, Watched<Class>,
                       std::conditional_t<HasForwardAll<Class>, WatchedMulti<Class>, Class>>;

}  // namespace networks

}  // namespace stepop

/// Registers a network with a constructor from its `Params`, its part of the config
/// (`const Config&`), or both in this order.
#define STEPOP_REGISTER_MODEL(Class, ...) STEPOP_REGISTER_MODEL_AS(#Class, Class, __VA_ARGS__)

/// The same with another name than that of the class.
#define STEPOP_REGISTER_MODEL_AS(name, Class, ...)                                 \
  STEPOP_REGISTER(                                                                 \
      ::stepop::models(), name,                                                    \
      [](const ::stepop::Config& params) -> std::shared_ptr<torch::nn::Module> {   \
        return ::stepop::make_component<::stepop::networks::Built<Class>>(params); \
      },                                                                           \
      ::stepop::about_class<Class>(__VA_ARGS__))
