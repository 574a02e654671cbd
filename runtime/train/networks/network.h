#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "runtime/core/config/registry.h"
#include "runtime/core/formats/state.h"

namespace stepop {

/// What shows its calls, so that examples of its inputs can be had: for its graph, for an export.
class WatchedCalls {
 public:
  using Watch = std::function<void(const std::vector<at::Tensor>& inputs)>;

  /// `watch` sees the inputs of each call before it runs; an empty one ends that.
  void watch_calls(Watch watch) { watch_ = std::move(watch); }

 protected:
  WatchedCalls() = default;
  ~WatchedCalls() = default;

  /// A registered network says so of each `forward` and `forward_all` by itself. One that is called
  /// by a function of its own, `forward(pose, appearance)`, calls this in there.
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

  /// What a user should know about it before a run begins; empty when there is nothing.
  virtual std::string warning() const { return {}; }
};

/// A network with several inputs, or several outputs, in an order of its own.
class MultiNetwork : public torch::nn::Module, public WatchedCalls {
 public:
  virtual std::vector<at::Tensor> forward_all(const std::vector<at::Tensor>& inputs) = 0;

  /// The names of its inputs in their order, for a config that gives some of them by name; those
  /// that it leaves out are undefined tensors. Empty: they have no names.
  virtual std::vector<std::string> input_names() const { return {}; }
};

using ModelRegistry = Registry<std::shared_ptr<torch::nn::Module>(const Config&)>;
ModelRegistry& models();

/// Keys that name a network's class where there is no `class`. An iterator that reads configs of
/// another program adds that program's, before main().
std::vector<std::string>& other_class_keys();

/// The parameters and buffers of a network by name. They share memory with it.
State tensors_of(const torch::nn::Module& module);

/// Copies `state` into the tensors `own` of what is tracked as `name`. Throws Error, and changes
/// nothing, when a tensor is missing, left over, or of another shape or type.
void load_tensors(const std::string& name, const State& own, const State& state);

/// What helps when a layer was not registered, for messages.
inline constexpr const char* kRegisterModule =
    "layer_ = register_module(\"layer\", torch::nn::Linear(2, 1))";

namespace networks {

template <class Class>
class Watched : public Class {
 public:
  explicit Watched(const Config& params) : Class(params) {}
  at::Tensor forward(const at::Tensor& input) override {
    if (this->is_watched()) this->call_begins({input});
    return Class::forward(input);
  }
};

template <class Class>
class WatchedMulti : public Class {
 public:
  explicit WatchedMulti(const Config& params) : Class(params) {}
  std::vector<at::Tensor> forward_all(const std::vector<at::Tensor>& inputs) override {
    this->call_begins(inputs);
    return Class::forward_all(inputs);
  }
};

// One that is `final`, or hides the function, is built as it is, and its calls are not seen.
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

/// What is made for a registered class: the same, with calls that can be watched.
template <class Class>
using Built =
    std::conditional_t<HasForward<Class>, Watched<Class>,
                       std::conditional_t<HasForwardAll<Class>, WatchedMulti<Class>, Class>>;

}  // namespace networks

}  // namespace stepop

/// Registers a network that has a constructor from `const Config&`, its own part of the config.
#define STEPOP_REGISTER_MODEL(Class, ...)                                  \
  STEPOP_REGISTER(                                                         \
      ::stepop::models(), #Class,                                          \
      [](const ::stepop::Config& params) {                                 \
        return std::make_shared<::stepop::networks::Built<Class>>(params); \
      },                                                                   \
      __VA_ARGS__)
